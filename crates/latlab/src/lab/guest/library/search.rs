//! Where libraries are looked for: what `ld.so(8)` says, read where `ldconfig(8)` reads it.

use super::elf::Elf;
use crate::lab::arch::GUEST;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders of `ld.so.conf` as the loader knows them: it does not read that file itself.
pub(super) const CACHE: &str = "/etc/ld.so.cache";

/// A program or library that is in memory once the program runs.
pub(super) struct Loaded {
    pub(super) path: PathBuf,
    pub(super) elf: Elf,
    /// Which one asked for it.
    asked_by: Option<usize>,
}

impl Loaded {
    /// The program itself, under its real path.
    pub(super) fn program(path: PathBuf, elf: Elf) -> Loaded {
        Loaded { path, elf, asked_by: None }
    }

    /// The folders in a text such as `$ORIGIN/../lib:/opt/lib`.
    fn folders(&self, text: Option<&String>) -> Vec<PathBuf> {
        let texts = text.into_iter().flat_map(|text| text.split(':'));
        texts.filter(|text| !text.is_empty()).map(|text| self.expand(text)).collect()
    }

    /// A path in which `$ORIGIN` is the folder that this one lies in.
    fn expand(&self, text: &str) -> PathBuf {
        let origin = self.path.parent().unwrap_or(Path::new("/")).to_string_lossy();
        text.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", &origin).into()
    }
}

/// What the user and the machine say of where things are.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// `LD_LIBRARY_PATH`.
    pub(super) library_path: Vec<PathBuf>,
    /// `PATH`.
    pub(super) path: Vec<PathBuf>,
    /// The folders that `ld.so.conf` names.
    pub(super) configured: Vec<PathBuf>,
}

impl Search {
    /// As a program would find it that this process starts.
    pub(super) fn of_this_process() -> Search {
        let folders = |text: OsString| std::env::split_paths(&text).collect::<Vec<_>>();
        let variable = |name| std::env::var_os(name).map(folders).unwrap_or_default();
        Search {
            library_path: variable("LD_LIBRARY_PATH"),
            path: variable("PATH"),
            configured: configured(Path::new("/etc/ld.so.conf")),
        }
    }

    /// The program that `PATH` leads to.
    pub(super) fn command(&self, name: &str) -> Option<PathBuf> {
        self.path.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// The library that the object `at` gets when it asks for `name`. Of a library in several
    /// variants (`glibc-hwcaps`) it is the one for every processor.
    pub(super) fn library(&self, name: &str, objects: &[Loaded], at: usize) -> Option<Loaded> {
        let asking = &objects[at];
        let candidates = if name.contains('/') {
            vec![asking.expand(name)]
        } else {
            let folders = self.folders(objects, at);
            folders.into_iter().map(|folder| folder.join(name)).collect()
        };
        candidates.into_iter().find_map(|path| {
            let elf = Elf::read(&std::fs::read(&path).ok()?).ok()??;
            Some(Loaded { path, elf, asked_by: Some(at) })
        })
    }

    /// The folders in which a library for the object `at` is looked for, the first one first.
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
        folders.extend(GUEST.library_folders.iter().map(PathBuf::from));
        folders
    }

    /// Whether a loader finds this library only in its cache.
    pub(super) fn only_cached(&self, library: &Path) -> bool {
        let Some(folder) = library.parent() else { return false };
        let standard = GUEST.library_folders.iter().any(|standard| Path::new(standard) == folder);
        !standard && self.configured.iter().any(|configured| configured == folder)
    }
}

/// The folders that a file in the form of `ld.so.conf` names, and those that it includes. None
/// where there is no such file.
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
