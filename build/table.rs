//! A table of files that is built into a program, for build scripts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Makes a table of the names and texts of all TOML files in `folder`, so that a new file needs no
/// code.
pub(crate) fn table(name: &str, folder: &Path, file: &str) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(folder).expect("the folder is part of the sources");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    let mut text = format!("static {name}: &[(&str, &str)] = &[");
    for path in files {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let path = format!("/{}", path.display());
        let _ = write!(
            text,
            "({stem:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),"
        );
    }
    text.push_str("];");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join(file);
    #[expect(clippy::disallowed_methods, reason = "a build writes nowhere else")]
    std::fs::write(out, text).expect("cargo has made the folder");
}
