//! Debian's packages through apt: look up, download, unpack. apt verifies signatures and digests
//! itself, and needs no privilege for this.

use super::Progress;
use super::archive::Archive;
use super::work::{ask, run, tool};
use crate::arch::Arch;
use latlab_part::failure::{Failure, FailureKind, Result};
use std::path::{Path, PathBuf};

/// A package that apt can download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version, as Debian numbers it.
    pub version: String,
    /// The packages that it depends on, without alternatives.
    pub depends: Vec<String>,
    /// Size of the download, bytes.
    pub size: u64,
    /// Size after unpacking, bytes.
    pub unpacked: u64,
}

/// The newest version of the package; none if the archive does not have it.
pub fn show(archive: &Archive, name: &str) -> Result<Option<Package>> {
    let mut command = archive.tool("apt-cache");
    // What follows is a name, even if it looks like an option.
    command.args(["show", "--no-all-versions", "--", name]);
    match on_debian(ask(&mut command)) {
        Ok(said) => Ok(parse(&said)),
        Err(failure) if failure == Failure::failed(ABSENT) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The packages of this list that the archive has, each in its newest version.
pub fn show_all(archive: &Archive, names: &[String]) -> Result<Vec<Package>> {
    let mut command = archive.tool("apt-cache");
    command.args(["show", "--no-all-versions", "--"]).args(names);
    let said = on_debian(ask(&mut command))?;
    Ok(said.split("\n\n").filter_map(parse).collect())
}

/// How `apt-cache show` fails for a package that the archive does not have.
const ABSENT: &str = "apt-cache: No packages found";

/// All package names with this prefix that the archive's packages mention.
pub fn names(archive: &Archive, prefix: &str) -> Result<Vec<String>> {
    let said = on_debian(ask(archive.tool("apt-cache").args(["pkgnames", "--", prefix])))?;
    Ok(said.lines().map(str::to_owned).collect())
}

/// The suites that have these packages: lines `PACKAGE | VERSION | ADDRESS SUITE/main …`.
pub fn suites(archive: &Archive, names: &[String]) -> Result<String> {
    on_debian(ask(archive.tool("apt-cache").args(["madison", "--"]).args(names)))
}

/// The result of `look` for an architecture of Debian, with the archive that has it: this machine's
/// own, else latlab's.
pub fn find<T>(
    name: &str,
    architecture: &str,
    progress: &mut dyn Progress,
    look: impl Fn(&Archive, &str) -> Result<Option<T>>,
) -> Result<(Archive, T)> {
    if architecture == Arch::own().debian
        && let Some(found) = look(&Archive::Machine, name)?
    {
        return Ok((Archive::Machine, found));
    }
    let archive = on_debian(Archive::own(architecture, progress))?;
    let found = look(&archive, name)?.ok_or_else(|| {
        Failure::failed(format!(
            "Debian has no package '{name}' for {architecture}: latlab kernel list --available \
             shows its kernels, or {ELSEWHERE}"
        ))
    })?;
    Ok((archive, found))
}

const ELSEWHERE: &str = "add a kernel of your own with latlab kernel add FILE";

/// Downloads packages into `folder` and returns their paths.
pub fn download(
    archive: &Archive,
    packages: &[Package],
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<Vec<PathBuf>> {
    let mut command = archive.tool("apt-get");
    command.args(["download", "-q", "--"]).current_dir(folder);
    command.args(packages.iter().map(|package| format!("{}={}", package.name, package.version)));
    let total = packages.iter().map(|package| package.size).sum();
    let fetched =
        || debs(folder).iter().filter_map(|deb| deb.metadata().ok()).map(|m| m.len()).sum();
    let look = &mut |progress: &mut dyn Progress| progress.at(fetched(), total);
    let ended = run(&command, &folder.join("apt.log"), progress, look);
    on_debian(ended).map_err(|failure| {
        failure.extended(FailureKind::Failed, &format!("; {}, or {ELSEWHERE}", archive.doubt()))
    })?;
    let debs = debs(folder);
    if debs.len() == packages.len() {
        return Ok(debs);
    }
    Err(Failure::failed("apt-get download left no package"))
}

/// Unpacks a package into a folder of its own.
pub fn unpack(deb: &Path, into: &Path, progress: &mut dyn Progress) -> Result<()> {
    let log = deb.with_extension("log");
    run(tool("dpkg-deb").arg("-x").arg(deb).arg(into), &log, progress, &mut |_| ())
}

fn debs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "deb"))
        .collect()
}

/// Names the alternative on machines without apt.
fn on_debian<T>(answer: Result<T>) -> Result<T> {
    let alternative = format!(", which fetches packages: {ELSEWHERE}");
    answer.map_err(|failure| failure.extended(FailureKind::Unsupported, &alternative))
}

/// Reads the first record of `apt-cache show`.
pub fn parse(text: &str) -> Option<Package> {
    let record = text.split("\n\n").next()?;
    let field =
        |name: &str| record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let number = |name| field(name).and_then(|text| text.trim().parse::<u64>().ok());
    let first_word = |text: &str| text.split([' ', '|', '(']).next().unwrap_or_default().to_owned();
    // A package that is installed but can't be downloaded has no file.
    field("Filename")?;
    Some(Package {
        name: field("Package")?.trim().to_owned(),
        version: field("Version")?.trim().to_owned(),
        depends: field("Depends").unwrap_or_default().split(", ").map(first_word).collect(),
        size: number("Size")?,
        unpacked: number("Installed-Size").unwrap_or(0).saturating_mul(1024),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_a_record_of_apt() {
        let text = "Package: linux-image-6.12-amd64\nVersion: 6.12.117-1\nInstalled-Size: 12\n\
                    Depends: linux-image-6.12.117-amd64 (= 6.12.117-1), kmod | busybox\n\
                    Filename: pool/x.deb\nSize: 1476\nDescription: Linux\n for: PCs\n\nPackage: old\n";
        let package = Package {
            name: "linux-image-6.12-amd64".to_owned(),
            version: "6.12.117-1".to_owned(),
            depends: vec!["linux-image-6.12.117-amd64".to_owned(), "kmod".to_owned()],
            size: 1476,
            unpacked: 12 * 1024,
        };
        assert_eq!(parse(text), Some(package));
        assert_eq!(parse(&text.replace("Filename", "Status")), None);
        assert_eq!(parse(""), None);
        let large = text.replace("Size: 12\n", &format!("Size: {}\n", u64::MAX));
        assert_eq!(parse(&large).map(|package| package.unpacked), Some(u64::MAX));
    }
}
