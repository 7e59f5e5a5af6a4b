//! Finds the drawing code of reports.

use std::path::{Path, PathBuf};

fn main() {
    // Not `env!`: the compiled script is kept when the folder of the sources is moved.
    let this = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let workspace = this.ancestors().nth(2).expect("this crate lies in crates/");
    let charts = workspace.join("target/charts/charts.js.gz");
    embed("LATLAB_CHARTS", &charts, "`make build` makes it");
}

/// Passes the path of a file to `include_bytes!`, or reports how to obtain a missing one.
fn embed(name: &str, path: &Path, remedy: &str) {
    println!("cargo::rerun-if-changed={}", path.display());
    match path.canonicalize() {
        Ok(path) => println!("cargo::rustc-env={name}={}", path.display()),
        Err(_) => println!("cargo::error={} is missing: {remedy}", path.display()),
    }
}
