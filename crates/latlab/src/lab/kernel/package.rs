//! Kernels from Debian's packages.

use super::store::{self, Draft, Origin, Store, version_key};
use super::{Fetched, Kernel, Progress, Source, apt, image};
use crate::failure::{Failure, Result, failed};
use crate::lab::arch::Arch;
use std::path::{Path, PathBuf};

/// Fetches the newest kernel of the package `name`, unless it is cached.
pub(crate) fn fetch(store: &Store, name: &str, progress: &mut dyn Progress) -> Result<Fetched> {
    check_name(name)?;
    let asked = Source::Package(name.to_owned());
    let draft = store.begin(&format!("fetch-{name}"), &format!("fetching {name}"), progress)?;
    let package = apt::find(name, &draft.folder.join("update.log"), progress, resolve)?;
    let itself = Source::Package(package.name.clone());
    if let Some((kernel, facts)) = store.newest(&itself)?
        && facts.origin.version == package.version
    {
        store::serve(&kernel, facts, asked)?;
        return Ok(Fetched::Known(kernel));
    }
    let compressed_and_not = 100_000_000;
    draft.need_space(package.size + package.unpacked + compressed_and_not)?;
    progress.note(&format!("fetching {} ({} MB)", package.name, package.size / 1_000_000));
    let deb = apt::download(&package, &draft.folder, progress)?;
    let tree = draft.folder.join("tree");
    apt::unpack(&deb, &tree, progress)?;
    let mut serves = vec![itself, asked];
    serves.dedup();
    let origin = Origin { what: package.name, version: package.version, serves };
    install(draft, &tree, origin).map(Fetched::New)
}

/// Checks a name, which becomes the name of a file: only characters of a package name are allowed
/// (Debian Policy, 5.6.1).
fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "'{name}' is not a package name: write one such as linux-image-6.12-{}",
        Arch::usual().debian
    )))
}

/// The package with the kernel of `name`: the package itself, the one it depends on, or the newest
/// of its series, if this Debian release uses other names. The unsigned package is preferred to the
/// one signed for secure boot: both hold the same kernel.
fn resolve(name: &str) -> Result<Option<apt::Package>> {
    let Some(package) = apt::show(name)? else {
        return newest(name);
    };
    match package.depends.iter().find(|name| name.starts_with("linux-image-")) {
        None => Ok(Some(package)),
        Some(image) => match apt::show(&format!("{image}-unsigned"))? {
            None => apt::show(image),
            unsigned => Ok(unsigned),
        },
    }
}

/// The newest package of the series and kind of a name such as `linux-image-6.12-rt-amd64`.
fn newest(name: &str) -> Result<Option<apt::Package>> {
    let Some((start, kind)) = series(name) else { return Ok(None) };
    let mut names = apt::names(&start)?;
    names.retain(|name| of_kind(name, &start, kind));
    names.sort_by_cached_key(|name| version_key(name));
    // apt also lists names without a package.
    for name in names.iter().rev() {
        if let Some(package) = apt::show(name)? {
            return Ok(Some(package));
        }
    }
    Ok(None)
}

/// The prefix of a series, and the kind at the end of the name.
fn series(name: &str) -> Option<(String, &str)> {
    let (series, kind) = name.strip_prefix("linux-image-")?.split_once('-')?;
    series
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| (format!("linux-image-{series}."), kind))
}

/// Whether a name is that of an unsigned kernel of this kind: the part between series and kind has
/// no '-'.
fn of_kind(name: &str, start: &str, kind: &str) -> bool {
    let rest = name.strip_prefix(start).and_then(|rest| rest.strip_suffix("-unsigned"));
    let rest = rest.and_then(|rest| rest.strip_suffix(kind)?.strip_suffix('-'));
    rest.is_some_and(|number| !number.contains('-'))
}

/// Adds the kernel of an unpacked package to the cache.
fn install(draft: Draft, tree: &Path, origin: Origin) -> Result<Kernel> {
    let (file, release) = vmlinuz(tree, &origin.what)?;
    let shown = file.display().to_string();
    let bytes = std::fs::read(&file).map_err(|e| failed(&shown, e))?;
    let image =
        image::read(&bytes).map_err(|e| failed(&format!("{release} of {}", origin.what), e))?;
    let config = tree.join(format!("boot/config-{release}"));
    if config.is_file() {
        draft.take(&config, "config")?;
    }
    let places = [tree.to_owned(), tree.join("usr")];
    let modules = places.map(|place| place.join(format!("lib/modules/{release}")));
    if let Some(modules) = modules.iter().find(|modules| modules.is_dir()) {
        draft.take(modules, &format!("lib/modules/{}", image.release))?;
    }
    draft.finish(&called(&release), &bytes, image, origin)
}

/// The kernel in the package, and its release.
fn vmlinuz(tree: &Path, package: &str) -> Result<(PathBuf, String)> {
    let entries = std::fs::read_dir(tree.join("boot")).into_iter().flatten().flatten();
    let mut found = entries.filter_map(|entry| {
        let release = entry.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned();
        Some((entry.path(), release))
    });
    found.next().ok_or_else(|| {
        Failure::Failed(format!("the package {package} contains no kernel (no /boot/vmlinuz-…)"))
    })
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
        assert!(!fits("linux-image-6.12.57+deb13-amd64"));
        assert!(!fits("linux-image-6.12.57+deb13-amd64-dbg"));
        assert!(!fits("linux-image-6.1.57-amd64-unsigned"));
        assert_eq!(series("linux-image-amd64"), None);
    }
}
