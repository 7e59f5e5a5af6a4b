//! Kernel headers and build programs, against which modules are built.

use super::archive::Archive;
use super::store::{self, Draft, Facts};
use super::work::{run, tool};
use super::{Kernel, Progress, Source, apt};
use crate::arch::Arch;
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::file;
use std::path::{Path, PathBuf};

/// Their folder in the kernel's folder.
pub(super) const PLACE: &str = "headers";

/// Whether a kernel's folder contains its headers.
pub(super) fn are_with(kernel: &Kernel) -> Result<bool> {
    store::exists(&kernel.folder.join(PLACE))
}

/// The folder in which make builds modules for a kernel. A package's headers are fetched when first
/// needed.
pub(super) fn of(
    kernel: &Kernel,
    facts: &Facts,
    draft: &Draft,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let there = kernel.folder.join(PLACE);
    match facts.origin.serves.first() {
        Some(Source::Package(_)) => {
            if !are_with(kernel)? {
                fetch(kernel, facts, draft, progress)?;
            }
            Ok(there.join(below(&package_name(&facts.origin.what))))
        }
        Some(Source::Build(_)) if are_with(kernel)? => Ok(there),
        Some(Source::Build(name)) => Err(Failure::unsupported(format!(
            "the kernel {name} was built without headers for modules: run latlab kernel build \
             {name}, which takes minutes"
        ))),
        _ => installed(&kernel.release),
    }
}

/// Copies them from a built kernel tree.
pub(super) fn collect(
    tree: &Path,
    to: &Path,
    log: &Path,
    progress: &mut dyn Progress,
) -> Result<()> {
    let mut script = tool("sh");
    script.arg("scripts/package/install-extmod-build").arg(to).current_dir(tree);
    script
        .env("srctree", ".")
        .env("SRCARCH", Arch::usual().source_folder)
        .env("TMPDIR", tree)
        .env("CC", "gcc")
        .env("HOSTCC", "gcc");
    run(&script, log, progress, &mut |_| ())
}

/// The headers installed on this machine, for a kernel from a file.
fn installed(release: &str) -> Result<PathBuf> {
    let folder = Path::new("/lib/modules").join(release).join("build");
    if folder.join("Makefile").is_file() {
        return Ok(folder);
    }
    Err(Failure::unsupported(format!(
        "modules for {release} can't be built without its kernel headers: install them, so that \
         {} exists",
        folder.display()
    )))
}

/// The headers package of a kernel package.
fn package_name(kernel: &str) -> String {
    kernel.trim_end_matches("-unsigned").replacen("linux-image-", "linux-headers-", 1)
}

/// The folder inside a headers package.
fn below(package: &str) -> PathBuf {
    Path::new("usr/src").join(package)
}

/// Fetches the headers into the kernel's folder.
fn fetch(kernel: &Kernel, facts: &Facts, draft: &Draft, progress: &mut dyn Progress) -> Result<()> {
    let all = packages(kernel, facts, progress)?;
    let fetched = all.iter().map(|(_, package)| package.size).sum::<u64>();
    let unpacked = all.iter().map(|(_, package)| package.unpacked).sum::<u64>();
    draft.need_space(fetched + unpacked)?;
    let name = package_name(&facts.origin.what);
    progress.note(&format!("fetching {name} ({} MB)", fetched / 1_000_000));
    let tree = draft.folder.join("tree");
    for (archive, package) in &all {
        let folder = draft.folder.join(&package.name);
        std::fs::create_dir(&folder).at(&folder)?;
        for deb in apt::download(archive, std::slice::from_ref(package), &folder, progress)? {
            apt::unpack(&deb, &tree, progress)?;
        }
    }
    settle(&tree.join(below(&name)))?;
    let place = kernel.folder.join(PLACE);
    std::fs::rename(&tree, &place).at(&place)
}

/// The three packages, each with its archive: the headers of this kernel, the common headers of its
/// version, and the build programs for this machine.
fn packages(
    kernel: &Kernel,
    facts: &Facts,
    progress: &mut dyn Progress,
) -> Result<Vec<(Archive, apt::Package)>> {
    let name = package_name(&facts.origin.what);
    let (archive, first) = apt::find(&name, kernel.arch.debian, progress, apt::show)?;
    if first.version != facts.origin.version {
        let source = facts.origin.serves.last().map(Source::name).unwrap_or_default();
        return Err(Failure::unsupported(format!(
            "the headers of {} {} are no longer available, only those of {}: run latlab kernel \
             fetch {source} to use that kernel",
            kernel.name, facts.origin.version, first.version
        )));
    }
    let needed =
        |name: &&String| name.starts_with("linux-headers-") || name.starts_with("linux-kbuild-");
    let others: Vec<String> = first.depends.iter().filter(needed).cloned().collect();
    let mut packages = vec![(archive.clone(), first)];
    for other in others {
        if other.starts_with("linux-kbuild-") && !kernel.arch.is_host() {
            packages.push(apt::find(&other, Arch::own().debian, progress, apt::show)?);
            continue;
        }
        let unknown = || Failure::failed(format!("{name} needs {other}, which apt does not know"));
        packages.push((archive.clone(), apt::show(&archive, &other)?.ok_or_else(unknown)?));
    }
    Ok(packages)
}

/// Makes the only absolute paths of the packages, below `/usr/src`, relative.
fn settle(folder: &Path) -> Result<()> {
    let path = folder.join("Makefile");
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(&path).context(&shown)?;
    let text = text.replace("/usr/src/", "../");
    file::write_atomically(&path, text.as_bytes()).context(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_name_follows_the_kernel_package() {
        let rt = "linux-image-6.12.117+deb12-rt-amd64-unsigned";
        assert_eq!(package_name(rt), "linux-headers-6.12.117+deb12-rt-amd64");
        assert_eq!(package_name("linux-image-6.1.0-56-amd64"), "linux-headers-6.1.0-56-amd64");
    }

    #[test]
    fn settle_makes_the_absolute_path_relative() {
        let folder = tempfile::tempdir().unwrap();
        let makefile = folder.path().join("Makefile");
        // Since Linux 7 there is a second one.
        let text = b"KBUILD_OUTPUT=/usr/src/linux-headers-7.3.4-amd64\n\
                     include /usr/src/linux-headers-7.3.4-common/Makefile\n";
        file::write_atomically(&makefile, text).unwrap();
        settle(folder.path()).unwrap();
        let settled = std::fs::read_to_string(&makefile).unwrap();
        let relative = "KBUILD_OUTPUT=../linux-headers-7.3.4-amd64\n\
                        include ../linux-headers-7.3.4-common/Makefile\n";
        assert_eq!(settled, relative);
    }
}
