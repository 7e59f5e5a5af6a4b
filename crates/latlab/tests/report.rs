//! What `latlab report` writes is opened by a browser and looked at.

mod sample;

use std::path::Path;
use std::process::{Command, Output};

#[test]
fn z() {
    let out = std::env::var("SAMPLE_OUT").unwrap();
    std::fs::write(format!("{out}/before.json"), sample::record(1).to_json()).unwrap();
    std::fs::write(format!("{out}/after.json"), sample::record(3).to_json()).unwrap();
}
