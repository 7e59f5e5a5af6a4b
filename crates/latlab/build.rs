//! Finds what is built into the program: the drawing code of reports, a font, the profiles, the
//! studies.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
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
    let sources = this.join("src");
    table("SHIPPED", &sources.join("lab/profile"), "profiles.rs");
    table("STUDIES", &sources.join("study"), "studies.rs");
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
    write(name, &packed.expect("writing to memory does not fail"));
}

/// Writes a file to the folder of the build.
fn write(name: &str, bytes: &[u8]) {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join(name);
    #[expect(clippy::disallowed_methods, reason = "a build writes nowhere else")]
    std::fs::write(out, bytes).expect("cargo has made the folder");
}

/// Makes a table of the names and texts of all TOML files in `folder`, so that a new file needs no
/// code.
fn table(name: &str, folder: &Path, file: &str) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(folder).expect("the folder is part of the sources");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    let mut text = format!("static {name}: &[(&str, &str)] = &[");
    for path in files {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let _ = write!(text, "({stem:?}, include_str!({:?})),", path.display().to_string());
    }
    text.push_str("];");
    write(file, text.as_bytes());
}
