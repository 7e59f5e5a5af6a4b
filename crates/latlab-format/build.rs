//! Finds what reports contain: their drawing code and a font.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

fn main() {
    // Not `env!`: the compiled script is kept when the folder of the sources is moved.
    let this = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let workspace = this.ancestors().nth(2).expect("this crate lies in crates/");
    let charts = workspace.join("target/charts/charts.js.gz");
    embed("LATLAB_CHARTS", &charts, "`make build` makes it");
    compress(Path::new(FONT), "font.gz", "install fonts-dejavu-core, then `make build`");
}

/// Passes the path of a file to `include_bytes!`, or reports how to obtain a missing one.
fn embed(name: &str, path: &Path, remedy: &str) {
    println!("cargo::rerun-if-changed={}", path.display());
    match path.canonicalize() {
        Ok(path) => println!("cargo::rustc-env={name}={}", path.display()),
        Err(_) => println!("cargo::error={} is missing: {remedy}", path.display()),
    }
}

/// Compresses a file into the folder of the build, for `include_bytes!`.
fn compress(path: &Path, name: &str, remedy: &str) {
    println!("cargo::rerun-if-changed={}", path.display());
    let Ok(bytes) = std::fs::read(path) else {
        println!("cargo::error={} is missing: {remedy}", path.display());
        return;
    };
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let packed = packed.write_all(&bytes).and_then(|()| packed.finish());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join(name);
    #[expect(clippy::disallowed_methods, reason = "a build writes nowhere else")]
    std::fs::write(out, packed.expect("writing to memory does not fail"))
        .expect("cargo has made the folder");
}
