//! The search for libraries, as in `ld.so(8)`, with the folders that `ldconfig(8)` reads.

use super::elf::Elf;
use crate::arch::Arch;
use crate::guest::Variables;
use latlab_part::failure::{Context as _, Result, failed};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The loader's cache of the folders in `ld.so.conf`, which it does not read itself.
pub(super) const CACHE: &str = "/etc/ld.so.cache";

/// A program or library that the loader maps.
pub(super) struct Loaded {
    pub(super) path: PathBuf,
    pub(super) elf: Elf,
    /// Index of the object that needs it.
    asked_by: Option<usize>,
}

impl Loaded {
    /// The program, with its real path.
    pub(super) fn program(path: PathBuf, elf: Elf) -> Loaded {
        Loaded { path, elf, asked_by: None }
    }

    /// The folders in a text such as `$ORIGIN/../lib:/opt/lib`.
    fn folders(&self, text: Option<&String>) -> Vec<PathBuf> {
        let texts = text.into_iter().flat_map(|text| text.split(':'));
        texts.filter(|text| !text.is_empty()).map(|text| self.expand(text)).collect()
    }

    /// A path with `$ORIGIN` replaced by the folder of this object.
    fn expand(&self, text: &str) -> PathBuf {
        let origin = self.path.parent().unwrap_or(Path::new("/")).to_string_lossy();
        text.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", &origin).into()
    }
}

/// The search paths of a program in the guest.
#[derive(Debug)]
pub(super) struct Search {
    /// The architecture of the guest.
    pub(super) arch: &'static Arch,
    /// `LD_LIBRARY_PATH`.
    pub(super) library_path: Vec<PathBuf>,
    /// `PATH`.
    pub(super) path: Vec<PathBuf>,
    /// The folders in `ld.so.conf`.
    pub(super) configured: Vec<PathBuf>,
}

impl Search {
    /// The search paths of a program with these environment variables.
    pub(super) fn of(variables: &Variables, arch: &'static Arch) -> Result<Search> {
        let folders = |text: &String| std::env::split_paths(text).collect::<Vec<_>>();
        let variable = |name| variables.get(name).map(folders).unwrap_or_default();
        Ok(Search {
            arch,
            library_path: variable("LD_LIBRARY_PATH"),
            path: variable("PATH"),
            configured: configured(Path::new("/etc/ld.so.conf"))?,
        })
    }

    /// The program of this name in `PATH`.
    pub(super) fn command(&self, name: &str) -> Result<Option<PathBuf>> {
        for path in self.path.iter().map(|folder| folder.join(name)) {
            if unless_absent(&path, std::fs::metadata(&path))?.is_some_and(|there| there.is_file())
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// The library `name` that the object `at` gets. Of several variants (`glibc-hwcaps`) it is the
    /// generic one.
    pub(super) fn library(
        &self,
        name: &str,
        objects: &[Loaded],
        at: usize,
    ) -> Result<Option<Loaded>> {
        let asking = &objects[at];
        let candidates = if name.contains('/') {
            vec![asking.expand(name)]
        } else {
            let folders = self.folders(objects, at);
            folders.into_iter().map(|folder| folder.join(name)).collect()
        };
        for path in candidates {
            let Some(bytes) = unless_absent(&path, std::fs::read(&path))? else { continue };
            if let Ok(Some(elf)) = Elf::read(&bytes, self.arch) {
                return Ok(Some(Loaded { path, elf, asked_by: Some(at) }));
            }
        }
        Ok(None)
    }

    /// The folders searched for libraries of the object `at`, in order.
    fn folders(&self, objects: &[Loaded], at: usize) -> Vec<PathBuf> {
        let asking = &objects[at];
        let mut folders = Vec::new();
        if asking.elf.runpath.is_none() {
            let mut next = Some(at);
            while let Some(object) = next.map(|at| &objects[at]) {
                if object.elf.runpath.is_none() {
                    folders.extend(object.folders(object.elf.rpath.as_ref()));
                }
                next = object.asked_by;
            }
        }
        folders.extend(self.library_path.iter().cloned());
        folders.extend(asking.folders(asking.elf.runpath.as_ref()));
        folders.extend(self.configured.iter().cloned());
        folders.extend(self.arch.library_folders.iter().map(PathBuf::from));
        folders
    }

    /// Whether the loader finds this library through its cache only.
    pub(super) fn only_cached(&self, library: &Path) -> bool {
        let Some(folder) = library.parent() else { return false };
        let mut standard = self.arch.library_folders.iter();
        let standard = standard.any(|standard| Path::new(standard) == folder);
        !standard && self.configured.iter().any(|configured| configured == folder)
    }
}

/// A result of a search for a file; none where the loader goes on to the next folder. Another failure
/// says nothing about the file, and the next one would be a wrong one.
fn unless_absent<T>(path: &Path, found: io::Result<T>) -> Result<Option<T>> {
    use ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    match found {
        Ok(found) => Ok(Some(found)),
        Err(e)
            if matches!(e.kind(), NotFound | NotADirectory | IsADirectory | PermissionDenied) =>
        {
            Ok(None)
        }
        Err(e) => Err(failed(&path.display().to_string(), e)),
    }
}

/// The folders named in a file in the format of `ld.so.conf` and in the files it includes. None if
/// the file does not exist.
pub(super) fn configured(file: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    read(file, &mut folders, &mut BTreeSet::new())?;
    Ok(folders)
}

fn read(file: &Path, folders: &mut Vec<PathBuf>, seen: &mut BTreeSet<PathBuf>) -> Result<()> {
    let Some(text) = unless_absent(file, std::fs::read(file))? else { return Ok(()) };
    if !seen.insert(file.to_owned()) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&text);
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let mut words = line.split_whitespace();
        match words.next() {
            Some("include") => {
                for pattern in words {
                    let pattern = file.with_file_name(pattern);
                    let files = glob::glob(&pattern.to_string_lossy());
                    for file in files.into_iter().flatten() {
                        let file = file.at(&pattern)?;
                        read(&file, folders, seen)?;
                    }
                }
            }
            Some(_) => folders.push(PathBuf::from(line)),
            None => {}
        }
    }
    Ok(())
}
