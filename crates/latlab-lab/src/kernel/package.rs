//! Kernels from Debian's packages.

use super::archive::Archive;
use super::store::{self, Draft, Origin, Store, version_key};
use super::{Fetched, Kernel, Progress, Source, apt, image};
use crate::arch::Arch;
use latlab_part::failure::{Context as _, Failure, Result};
use std::path::{Path, PathBuf};

/// The packages that contain one kernel.
#[derive(Debug)]
struct Found {
    /// The package by which the kernel is known: `linux-image-…`.
    name: String,
    version: String,
    /// One package or, since Linux 7, three: the kernel, its modules and its configuration.
    packages: Vec<apt::Package>,
}

/// Fetches the newest kernel of the package `name`, unless it is cached.
pub(super) fn fetch(store: &Store, name: &str, progress: &mut dyn Progress) -> Result<Fetched> {
    check_name(name)?;
    let asked = Source::Package(name.to_owned());
    let draft = store.begin(&format!("fetch-{name}"), &format!("fetching {name}"), progress)?;
    let (archive, found) = apt::find(name, Arch::of_package(name).debian, progress, resolve)?;
    let itself = Source::Package(found.name.clone());
    if let Some((kernel, facts)) = store.newest(&itself)?
        && facts.origin.version == found.version
        && kernel.is_intact()?
    {
        store::serve(&kernel, facts, asked)?;
        return Ok(Fetched::Known(kernel));
    }
    let size: u64 = found.packages.iter().map(|package| package.size).sum();
    let unpacked: u64 = found.packages.iter().map(|package| package.unpacked).sum();
    let compressed_and_not = 100_000_000;
    draft.need_space(size + unpacked + compressed_and_not)?;
    progress.note(&format!("fetching {} ({} MB)", found.name, size / 1_000_000));
    let tree = draft.folder.join("tree");
    for deb in apt::download(&archive, &found.packages, &draft.folder, progress)? {
        apt::unpack(&deb, &tree, progress)?;
    }
    let mut serves = vec![itself, asked];
    serves.dedup();
    let origin = Origin { what: found.name, version: found.version, serves, modules: None };
    install(store, draft, &tree, origin).map(Fetched::New)
}

/// Checks a name, which becomes the name of a file: only characters of a package name are allowed
/// (Debian Policy, 5.6.1).
fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "'{name}' is not a package name: write one such as linux-image-6.12-{}",
        Arch::usual().debian
    )))
}

/// The packages with the kernel of `name`: the package itself, the one it depends on, or the newest
/// of its series, if this Debian release uses other names. The unsigned package is preferred to the
/// one signed for secure boot: both hold the same kernel.
fn resolve(archive: &Archive, name: &str) -> Result<Option<Found>> {
    let package = match apt::show(archive, name)? {
        Some(package) => real(archive, package)?,
        None => newest(archive, name)?,
    };
    package.map(|package| whole(archive, package)).transpose()
}

/// The package with a kernel, where this one may only depend on it.
fn real(archive: &Archive, package: apt::Package) -> Result<Option<apt::Package>> {
    match package.depends.iter().find(|name| name.starts_with("linux-image-")) {
        None => Ok(Some(package)),
        Some(image) => match apt::show(archive, &format!("{image}-unsigned"))? {
            None => apt::show(archive, image),
            unsigned => Ok(unsigned),
        },
    }
}

/// The newest package of the series and kind of a name such as `linux-image-6.12-rt-amd64`.
fn newest(archive: &Archive, name: &str) -> Result<Option<apt::Package>> {
    let Some((start, kind)) = series(name) else { return Ok(None) };
    let mut names = apt::names(archive, &start)?;
    names.retain(|name| of_kind(name, &start, kind));
    let signed = |name: &str| name.trim_end_matches(UNSIGNED).to_owned();
    names.sort_by_cached_key(|name| (version_key(&signed(name)), name.ends_with(UNSIGNED)));
    // apt also lists names without a package.
    for name in names.iter().rev() {
        if let Some(package) = apt::show(archive, name)? {
            return Ok(Some(package));
        }
    }
    Ok(None)
}

const UNSIGNED: &str = "-unsigned";

/// Adds the packages among which a kernel is divided since Linux 7; the `linux-image` package is
/// empty there.
fn whole(archive: &Archive, package: apt::Package) -> Result<Found> {
    let (name, version) = (package.name.clone(), package.version.clone());
    let parts: Vec<String> = parts(&package).cloned().collect();
    if parts.is_empty() {
        return Ok(Found { name, version, packages: vec![package] });
    }
    let part = |part: &String| {
        let unknown = || Failure::failed(format!("{name} needs {part}, which apt does not know"));
        apt::show(archive, part)?.ok_or_else(unknown)
    };
    let packages = parts.iter().map(part).collect::<Result<_>>()?;
    Ok(Found { name, version, packages })
}

/// The names of the packages among which its kernel is divided; none where it has the kernel itself.
pub(super) fn parts(package: &apt::Package) -> impl Iterator<Item = &String> {
    const PARTS: [&str; 3] = ["linux-binary-", "linux-modules-", "linux-base-"];
    package.depends.iter().filter(|name| PARTS.iter().any(|part| name.starts_with(part)))
}

/// The prefix of a series, and the kind at the end of the name.
fn series(name: &str) -> Option<(String, &str)> {
    let (series, kind) = name.strip_prefix("linux-image-")?.split_once('-')?;
    series
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| (format!("linux-image-{series}."), kind))
}

/// Whether a name belongs to a kernel of this kind: between series and kind there are only numbers,
/// as in `6.12.117+deb12` and `6.1.0-56`.
fn of_kind(name: &str, start: &str, kind: &str) -> bool {
    let rest = name.trim_end_matches(UNSIGNED).strip_prefix(start);
    let numbers = rest.and_then(|rest| rest.strip_suffix(kind)?.strip_suffix('-'));
    let is_number = |piece: &str| piece.starts_with(|c: char| c.is_ascii_digit());
    numbers.is_some_and(|numbers| numbers.split('-').all(is_number))
}

/// Adds the kernel of unpacked packages to the cache.
fn install(store: &Store, draft: Draft, tree: &Path, origin: Origin) -> Result<Kernel> {
    let (file, release) = vmlinuz(tree, &origin.what)?;
    let shown = file.display().to_string();
    let bytes = std::fs::read(&file).context(&shown)?;
    let image = image::read(&bytes).context(&format!("{release} of {}", origin.what))?;
    // Since Linux 7 it lies among the modules, which are kept.
    std::fs::remove_file(&file).context(&shown)?;
    let places = [tree.to_owned(), tree.join("usr")];
    let modules = places.map(|place| place.join(format!("lib/modules/{release}")));
    let mut configs = vec![tree.join(format!("boot/config-{release}"))];
    configs.extend(modules.iter().map(|modules| modules.join("config")));
    if let Some(config) = first(&configs)? {
        draft.take(config, "config")?;
    }
    if let Some(modules) = first(&modules)? {
        draft.take(modules, &format!("lib/modules/{}", image.release))?;
    }
    let name = free_name(store, &release, &origin)?;
    draft.finish(&name, &bytes, image, origin)
}

/// The first of these paths that exists.
fn first(paths: &[PathBuf]) -> Result<Option<&Path>> {
    for path in paths {
        if store::exists(path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The kernel in the packages, and its release.
fn vmlinuz(tree: &Path, package: &str) -> Result<(PathBuf, String)> {
    let entries = |place: &str| std::fs::read_dir(tree.join(place)).into_iter().flatten().flatten();
    let in_boot = entries("boot").filter_map(|entry| {
        let release = entry.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned();
        Some((entry.path(), release))
    });
    let with_modules = entries("usr/lib/modules").filter_map(|entry| {
        let file = entry.path().join("vmlinuz");
        file.is_file().then(|| Some((file, entry.file_name().into_string().ok()?))).flatten()
    });
    in_boot.chain(with_modules).next().ok_or_else(|| {
        Failure::failed(format!("the package {package} contains no kernel (no vmlinuz)"))
    })
}

/// The name of a kernel in the cache. Two Debian releases may have the same release of Linux: the
/// second one is named in full.
fn free_name(store: &Store, release: &str, origin: &Origin) -> Result<String> {
    let name = called(release);
    let is_other = |(kernel, facts): &(Kernel, store::Facts)| {
        kernel.name == name && facts.origin.what != origin.what
    };
    let taken = store.kernels()?.iter().any(is_other);
    Ok(if taken { format!("debian-{release}") } else { name })
}

/// `debian-6.12.117-amd64`: the release without Debian's own version.
fn called(release: &str) -> String {
    let (number, rest) = release.split_once('+').unwrap_or((release, ""));
    let kind = rest.split_once('-').map_or(String::new(), |(_, kind)| format!("-{kind}"));
    format!("debian-{number}{kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_name_follows_its_release() {
        assert_eq!(called("6.12.117+deb12-rt-amd64"), "debian-6.12.117-rt-amd64");
        assert_eq!(called("6.1.0-25-amd64"), "debian-6.1.0-25-amd64");
    }

    #[test]
    fn of_kind_accepts_series_and_kind_only() {
        let (start, kind) = series("linux-image-6.12-amd64").unwrap();
        let fits = |name: &str| of_kind(name, &start, kind);
        assert!(fits("linux-image-6.12.57+deb13-amd64-unsigned"));
        assert!(!fits("linux-image-6.12.57+deb13-rt-amd64-unsigned"));
        assert!(fits("linux-image-6.12.57+deb13-amd64"));
        assert!(!fits("linux-image-6.12.57+deb13-amd64-dbg"));
        assert!(!fits("linux-image-6.1.57-amd64-unsigned"));
        assert_eq!(series("linux-image-amd64"), None);
        let (start, kind) = series("linux-image-6.1-rt-amd64").unwrap();
        assert!(of_kind("linux-image-6.1.0-56-rt-amd64-unsigned", &start, kind));
        assert!(!of_kind("linux-image-6.1.0-56-cloud-rt-amd64", &start, kind));
    }
}
