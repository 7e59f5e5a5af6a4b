//! The plugin that watches the laboratory's guests, built for this machine when it is first needed.

use super::store::Store;
use super::work::{check_tools, explain, log_file, run, tool};
use super::{Progress, cache, digest};
use crate::failure::{Result, failed};
use latlab_sys::file;
use std::path::{Path, PathBuf};

/// Its sources, as they lie in `plugin/`.
const SOURCES: &[(&str, &str)] = &[
    ("Makefile", include_str!("../../../../plugin/Makefile")),
    ("block.c", include_str!("../../../../plugin/block.c")),
    ("block.h", include_str!("../../../../plugin/block.h")),
    ("latlab.c", include_str!("../../../../plugin/latlab.c")),
    ("qemu.h", include_str!("../../../../plugin/qemu.h")),
];

/// What has to be on the machine.
const TOOLS: &[(&str, &str)] =
    &[("gcc", "gcc"), ("make", "make"), ("/usr/include/stdio.h", "libc6-dev")];

/// The plugin, under a name that has a digest of its sources.
pub(super) fn ready(store: &Store, progress: &mut dyn Progress) -> Result<PathBuf> {
    let place = cache()?.join(format!("plugin-{}.so", &sources()[..16]));
    if place.is_file() {
        return Ok(place);
    }
    check_tools("the laboratory's microscope", TOOLS)?;
    let draft = store.begin("plugin", "building the laboratory's microscope", progress)?;
    // Another may have built it while we waited.
    if !place.is_file() {
        let built = build(&draft.folder, progress)?;
        std::fs::rename(&built, &place).map_err(|e| failed(&place.display().to_string(), e))?;
    }
    Ok(place)
}

fn sources() -> String {
    let text = SOURCES.iter().map(|(name, text)| format!("{name}\n{text}\n"));
    digest(text.collect::<String>().as_bytes())
}

/// Builds it in a folder; where it lies then.
fn build(folder: &Path, progress: &mut dyn Progress) -> Result<PathBuf> {
    for (name, text) in SOURCES {
        let path = folder.join(name);
        let written = file::write_atomically(&path, text.as_bytes());
        written.map_err(|e| failed(&path.display().to_string(), e))?;
    }
    let what = "the laboratory's microscope";
    progress.note(&format!("building {what}"));
    let log = log_file("plugin")?;
    let mut make = tool("make");
    make.args(["CC=gcc", "OUT=latlab.so", "CFLAGS=-O2"]).current_dir(folder);
    let ended = run(&mut make, &log, progress, &mut |_| ());
    ended.map_err(|failure| explain(what, &log, failure, progress))?;
    Ok(folder.join("latlab.so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin");
        let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        let is_source = |path: &PathBuf| {
            let kind = path.extension().and_then(|kind| kind.to_str());
            path.ends_with("Makefile") || matches!(kind, Some("c" | "h"))
        };
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.filter(is_source).map(name).collect();
        names.sort();
        let built_in: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, built_in);
    }
}
