//! Finds what is built into the program: the drawing code of reports, a font, the profiles.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let workspace = workspace.expect("this crate lies in crates/");
    let charts = workspace.join("target/charts/charts.js.gz");
    embed("LATLAB_CHARTS", &charts, "`make build` makes it");
    embed("LATLAB_FONT", Path::new(FONT), "install fonts-dejavu-core, then `make build`");
    table("SHIPPED", &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/profile"), "profiles.rs");
}

/// Tells `include_bytes!` where a file is, or the user how to get it.
fn embed(name: &str, path: &Path, remedy: &str) {
    println!("cargo::rerun-if-changed={}", path.display());
    match path.canonicalize() {
        Ok(path) => println!("cargo::rustc-env={name}={}", path.display()),
        Err(_) => println!("cargo::error={} is missing: {remedy}", path.display()),
    }
}

/// Makes a table of the names and texts of all TOML files in `folder`, so that one more of them
/// needs no line of code.
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
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join(file);
    #[expect(clippy::disallowed_methods, reason = "a build writes nowhere else")]
    std::fs::write(out, text).expect("cargo has made the folder");
}
