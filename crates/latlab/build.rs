//! Finds the two files that are built into the program: the drawing code of reports and a font.

use std::path::Path;

const FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let workspace = workspace.expect("this crate lies in crates/");
    let charts = workspace.join("target/charts/charts.js.gz");
    embed("LATLAB_CHARTS", &charts, "`make build` makes it");
    embed("LATLAB_FONT", Path::new(FONT), "install fonts-dejavu-core, then `make build`");
}

/// Tells `include_bytes!` where a file is, or the user how to get it.
fn embed(name: &str, path: &Path, remedy: &str) {
    println!("cargo::rerun-if-changed={}", path.display());
    match path.canonicalize() {
        Ok(path) => println!("cargo::rustc-env={name}={}", path.display()),
        Err(_) => println!("cargo::error={} is missing: {remedy}", path.display()),
    }
}
