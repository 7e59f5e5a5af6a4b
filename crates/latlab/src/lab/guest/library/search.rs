//! The search for libraries, as in `ld.so(8)`, with the folders that `ldconfig(8)` reads.

use super::elf::Elf;
use crate::lab::arch::Arch;
use crate::lab::guest::Variables;
use std::collections::BTreeSet;
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
    pub(super) fn of(variables: &Variables, arch: &'static Arch) -> Search {
        let folders = |text: &String| std::env::split_paths(text).collect::<Vec<_>>();
        let variable = |name| variables.get(name).map(folders).unwrap_or_default();
        Search {
            arch,
            library_path: variable("LD_LIBRARY_PATH"),
            path: variable("PATH"),
            configured: configured(Path::new("/etc/ld.so.conf")),
        }
    }

    /// The program of this name in `PATH`.
    pub(super) fn command(&self, name: &str) -> Option<PathBuf> {
        self.path.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// The library `name` that the object `at` gets. Of several variants (`glibc-hwcaps`) it is the
    /// generic one.
    pub(super) fn library(&self, name: &str, objects: &[Loaded], at: usize) -> Option<Loaded> {
        let asking = &objects[at];
        let candidates = if name.contains('/') {
            vec![asking.expand(name)]
        } else {
            let folders = self.folders(objects, at);
            folders.into_iter().map(|folder| folder.join(name)).collect()
        };
        candidates.into_iter().find_map(|path| {
            let elf = Elf::read(&std::fs::read(&path).ok()?, self.arch).ok()??;
            Some(Loaded { path, elf, asked_by: Some(at) })
        })
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

/// The folders named in a file in the format of `ld.so.conf` and in the files it includes. None if
/// the file does not exist.
pub(super) fn configured(file: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    read(file, &mut folders, &mut BTreeSet::new());
    folders
}

fn read(file: &Path, folders: &mut Vec<PathBuf>, seen: &mut BTreeSet<PathBuf>) {
    let Ok(text) = std::fs::read_to_string(file) else { return };
    if !seen.insert(file.to_owned()) {
        return;
    }
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let mut words = line.split_whitespace();
        match words.next() {
            Some("include") => {
                for pattern in words {
                    let pattern = file.with_file_name(pattern);
                    let files = glob::glob(&pattern.to_string_lossy());
                    files.into_iter().flatten().flatten().for_each(|f| read(&f, folders, seen));
                }
            }
            Some(_) => folders.push(PathBuf::from(line)),
            None => {}
        }
    }
}
