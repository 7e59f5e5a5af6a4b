//! The test driver, built for a kernel of the laboratory when it is first needed.

use super::store::{Draft, Store};
use super::work::{check_tools, explain, log_file, make, run};
use super::{Kernel, Progress, digest, headers, unknown};
use crate::failure::{Failure, Result, failed};
use latlab_sys::file;
use std::path::{Path, PathBuf};

/// The sources of the driver, as they lie in `kmod/`.
const SOURCES: &[(&str, &str)] = &[
    ("Makefile", include_str!("../../../../kmod/Makefile")),
    ("device.c", include_str!("../../../../kmod/device.c")),
    ("driver.h", include_str!("../../../../kmod/driver.h")),
    ("edu.c", include_str!("../../../../kmod/edu.c")),
    ("inject.c", include_str!("../../../../kmod/inject.c")),
    ("interrupt.c", include_str!("../../../../kmod/interrupt.c")),
    ("latlab.h", include_str!("../../../../kmod/latlab.h")),
    ("loop.c", include_str!("../../../../kmod/loop.c")),
    ("schedule.c", include_str!("../../../../kmod/schedule.c")),
];

/// What has to be on the machine.
const TOOLS: &[(&str, &str)] = &[("gcc", "gcc"), ("make", "make")];

/// The driver for `kernel`. It lies beside the kernel, under a name that has a digest of its
/// sources, so that other sources give another one.
pub(crate) fn ready(
    store: &Store,
    kernel: &Kernel,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let place = kernel.folder.join(format!("latlab-{}.ko", &sources()[..16]));
    if place.is_file() {
        return Ok(place);
    }
    let name = &kernel.name;
    let key = format!("driver-{name}");
    let draft = store.begin(&key, &format!("building the test driver for {name}"), progress)?;
    // Another may have built it while we waited.
    if !place.is_file() {
        let built = build(store, kernel, &draft, progress)?;
        std::fs::rename(&built, &place).map_err(|e| failed(&place.display().to_string(), e))?;
    }
    Ok(place)
}

fn sources() -> String {
    let text = SOURCES.iter().map(|(name, text)| format!("{name}\n{text}\n"));
    digest(text.collect::<String>().as_bytes())
}

/// Builds it in the draft; where it lies then.
fn build(
    store: &Store,
    kernel: &Kernel,
    draft: &Draft,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    check_tools("the test driver", TOOLS)?;
    let kernels = store.kernels()?;
    let facts = kernels.iter().find(|(other, _)| other.name == kernel.name);
    let (_, facts) = facts.ok_or_else(|| unknown(store, &kernel.name))?;
    let tree = headers::of(kernel, facts, draft, progress)?;
    let folder = draft.folder.join("kmod");
    unpack(&folder)?;
    let what = format!("the test driver for {}", kernel.name);
    progress.note(&format!("building {what}"));
    let log = log_file(&format!("driver-{}", kernel.name))?;
    let module = format!("M={}", folder.display());
    // What only debuggers read is most of it, and names the folder it was built in.
    let words = ["CC=gcc", "CONFIG_DEBUG_INFO=", "CONFIG_DEBUG_INFO_BTF_MODULES=", &module];
    let ended =
        run(&mut make(&tree, &[&words[..], &["modules"]].concat()), &log, progress, &mut |_| ());
    ended.map_err(|failure| explain(&what, &log, failure, progress))?;
    let built = folder.join("latlab.ko");
    if built.is_file() {
        Ok(built)
    } else {
        Err(Failure::Failed(format!("{what}: make made nothing")))
    }
}

/// Writes the sources down.
fn unpack(folder: &Path) -> Result<()> {
    std::fs::create_dir(folder).map_err(|e| failed(&folder.display().to_string(), e))?;
    SOURCES.iter().try_for_each(|(name, text)| {
        let path = folder.join(name);
        file::write_atomically(&path, text.as_bytes())
            .map_err(|e| failed(&path.display().to_string(), e))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kmod");
        let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        let is_source = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A build leaves latlab.mod.c there.
            let kind = name.split_once('.').map(|(_, kind)| kind);
            name == "Makefile" || matches!(kind, Some("c" | "h"))
        };
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.filter(is_source).map(name).collect();
        names.sort();
        let built_in: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, built_in);
    }
}
