//! The cache of kernels: one folder per kernel, which appears complete or not at all.
//!
//! A kernel is prepared in a draft, a hidden folder next to the kernels that is locked by the
//! process that writes it, and then renamed. An unlocked draft was left by a killed process; the
//! next process that starts a draft removes it.

use super::image::{Boot, Image};
use super::{Kernel, Progress, Source, VMLINUX, cache, contents, digest, work};
use crate::arch::ArchName;
use crate::seal::Seal;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result, failed};
use latlab_sys::lock::LockFile;
use latlab_sys::{clock, file};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Contents of the file `kernel.json` in a kernel's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    release: String,
    /// Its architecture.
    arch: ArchName,
    /// The name of the file that QEMU boots.
    image: String,
    /// The seal of that file.
    seal: Seal,
    /// The seal of the list of its other files.
    contents: Seal,
    digest: String,
    /// Where it came from.
    #[serde(flatten)]
    pub origin: Origin,
}

/// The origin of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The package, the file, or the digest of a build's recipe.
    pub what: String,
    /// The version of the package, or of the source that was built; empty for a file.
    pub version: String,
    /// The sources by which profiles name it.
    pub serves: Vec<Source>,
    /// The digest of the modules on this machine that were copied with it, where some were.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub modules: Option<String>,
}

impl Origin {
    /// The origin in a few words.
    pub fn from(&self) -> String {
        match self.serves.first() {
            Some(Source::Build(_)) => format!("built from source {}", self.version),
            Some(Source::Package(_)) => format!("package version {}", self.version),
            _ => format!("file {}", self.what),
        }
    }
}

/// The file that marks a folder as a kernel.
const FACTS: &str = "kernel.json";
/// Start of a draft's name. The key follows.
const DRAFT: &str = ".draft-";

/// The folder of all kernels.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens the user's store. Fails where its folder can't be made.
    pub fn open() -> Result<Store> {
        Ok(Store::within(&cache()?))
    }

    /// The kernels of a cache.
    pub fn within(cache: &Path) -> Store {
        Store { folder: cache.join("kernels") }
    }

    /// All complete kernels, sorted by release, oldest first.
    pub fn kernels(&self) -> Result<Vec<(Kernel, Facts)>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|e| at(&self.folder, &e))?,
        };
        let folder = |entry: std::io::Result<fs::DirEntry>| Ok(entry?.path());
        let folders: std::io::Result<Vec<PathBuf>> = entries.map(folder).collect();
        let folders = folders.map_err(|e| at(&self.folder, &e))?;
        let kernels = folders.iter().filter_map(|folder| kernel(folder).transpose());
        let mut kernels = kernels.collect::<Result<Vec<_>>>()?;
        kernels
            .sort_by_cached_key(|(kernel, _)| (version_key(&kernel.release), kernel.name.clone()));
        Ok(kernels)
    }

    /// The newest kernel that serves `source`.
    pub fn newest(&self, source: &Source) -> Result<Option<(Kernel, Facts)>> {
        let mut kernels = self.kernels()?.into_iter();
        Ok(kernels.rfind(|(_, facts)| facts.origin.serves.contains(source)))
    }

    /// Whether there is a folder of this name, with a complete kernel or not.
    pub fn has(&self, name: &str) -> Result<bool> {
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        Ok(is_name && exists(&self.folder.join(name))?)
    }

    /// Removes the kernel of this name, complete or not: renames its folder, then deletes it.
    pub fn remove(&self, name: &str, progress: &mut dyn Progress) -> Result<()> {
        let draft = self.begin_removal(name, progress)?;
        self.move_away(name, &draft)
    }

    /// Removes a kernel that was changed since it was stored. Whether it was removed: another process
    /// may have done so before, and stored it anew.
    pub fn remove_changed(&self, name: &str, progress: &mut dyn Progress) -> Result<bool> {
        let draft = self.begin_removal(name, progress)?;
        let there = kernel(&self.folder.join(name))?.map(|(kernel, _)| kernel.is_intact());
        let is_changed = there.transpose()? == Some(false);
        if is_changed {
            self.move_away(name, &draft)?;
        }
        Ok(is_changed)
    }

    fn begin_removal(&self, name: &str, progress: &mut dyn Progress) -> Result<Draft> {
        self.begin(&format!("remove-{name}"), &format!("removing {name}"), progress)
    }

    /// Moves a kernel into a draft, which is deleted.
    fn move_away(&self, name: &str, draft: &Draft) -> Result<()> {
        let (folder, away) = (self.folder.join(name), draft.folder.join("removed"));
        fs::rename(&folder, away).map_err(|e| at(&folder, &e))
    }

    /// Starts a draft, which only one process at a time may hold; waits for another that does
    /// `what`.
    pub fn begin(&self, key: &str, what: &str, progress: &mut dyn Progress) -> Result<Draft> {
        let mut told = false;
        let lock = loop {
            if let Some(lock) = self.lock(key)? {
                break lock;
            }
            if !told {
                progress.note(&format!("another latlab is {what}: waiting for it"));
                told = true;
            } else if progress.pause() {
                return Err(work::interrupted());
            }
        };
        let folder = self.folder.join(format!("{DRAFT}{key}"));
        clear(&folder)?;
        self.remove_abandoned();
        fs::create_dir(&folder).map_err(|e| at(&folder, &e))?;
        Ok(Draft { kernels: self.folder.clone(), folder, _lock: lock })
    }

    /// Locks the draft with this key. None where another process has it.
    fn lock(&self, key: &str) -> Result<Option<LockFile>> {
        let locks = self.folder.join(".locks");
        fs::create_dir_all(&locks).map_err(|e| at(&locks, &e))?;
        let path = locks.join(key);
        LockFile::take(&path).map_err(|e| at(&path, &e))
    }

    /// Removes the drafts that no process has locked. One that can't be removed only takes space.
    fn remove_abandoned(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let key = name.to_str().and_then(|name| name.strip_prefix(DRAFT));
            let lock = key.and_then(|key| self.lock(key).ok().flatten());
            if lock.is_some() {
                let _ = clear(&entry.path());
            }
        }
    }
}

/// A folder in which a kernel is prepared. Dropping it removes the folder.
#[derive(Debug)]
pub struct Draft {
    kernels: PathBuf,
    /// The folder of its files.
    pub folder: PathBuf,
    /// Released last, after the folder is removed.
    _lock: LockFile,
}

impl Draft {
    /// Fails if less space is free than needed.
    pub fn need_space(&self, bytes: u64) -> Result<()> {
        let free = file::free_space(&self.folder).map_err(|e| at(&self.folder, &e))?;
        if free >= bytes {
            return Ok(());
        }
        let (mega, folder) = (|bytes| bytes / 1_000_000, self.kernels.display());
        Err(Failure::failed(format!(
            "{folder}: {} MB are needed and {} MB are free: make room with latlab kernel remove",
            mega(bytes),
            mega(free)
        )))
    }

    /// The folder that becomes the kernel's, created on demand.
    fn whole(&self) -> Result<PathBuf> {
        let whole = self.folder.join("whole");
        fs::create_dir_all(&whole).map_err(|e| at(&whole, &e))?;
        Ok(whole)
    }

    /// Moves a file or folder of this draft into the kernel's folder.
    pub fn take(&self, from: &Path, place: &str) -> Result<()> {
        let to = self.whole()?.join(place);
        let folder = to.parent().expect("it lies in the draft");
        fs::create_dir_all(folder).map_err(|e| at(folder, &e))?;
        fs::rename(from, &to).map_err(|e| at(&to, &e))
    }

    /// Copies modules into the kernel's folder.
    pub fn copy_modules(&self, from: &Path, release: &str) -> Result<()> {
        copy(from, &self.whole()?.join(modules_place(release)))
    }

    /// Publishes the kernel that was read from a file with these `bytes` under its name. Fails if a
    /// kernel of that name has another origin.
    pub fn finish(self, name: &str, bytes: &[u8], image: Image, origin: Origin) -> Result<Kernel> {
        let (file, bytes, digest) = match &image.boot {
            Boot::Unpacked(unpacked) => (VMLINUX, unpacked.as_slice(), digest(bytes)),
            Boot::AsIs => ("image", bytes, digest(bytes)),
        };
        let (whole, release, arch) = (self.whole()?, image.release, ArchName(image.arch));
        let path = whole.join(file);
        write(&path, bytes)?;
        let seal = Seal::of(&path, bytes).map_err(|e| at(&path, &e))?;
        let (image, contents) = (file.to_owned(), contents::list(&whole)?);
        let facts = Facts { release, arch, image, seal, contents, digest, origin };
        write(&whole.join(FACTS), &json(&facts))?;
        let place = self.kernels.join(name);
        if let Some((_, there)) = kernel(&place)?
            && there.origin.serves.first() != facts.origin.serves.first()
        {
            return Err(Failure::failed(format!(
                "there is a kernel '{name}' already, {}: give another --name, or remove it first",
                there.origin.what
            )));
        }
        if exists(&place)? {
            fs::rename(&place, self.folder.join("replaced")).map_err(|e| at(&place, &e))?;
        }
        fs::rename(&whole, &place).map_err(|e| at(&place, &e))?;
        let vanished = || Failure::failed(format!("{}: somebody has changed it", place.display()));
        kernel(&place)?.map(|(kernel, _)| kernel).ok_or_else(vanished)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // A remaining folder is removed by the next draft.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Adds a source to the sources that the kernel serves.
pub fn serve(kernel: &Kernel, mut facts: Facts, source: Source) -> Result<()> {
    if facts.origin.serves.contains(&source) {
        return Ok(());
    }
    facts.origin.serves.push(source);
    write(&kernel.folder.join(FACTS), &json(&facts))
}

/// The kernel in a folder, if it is complete. An error where it can't be read.
fn kernel(folder: &Path) -> Result<Option<(Kernel, Facts)>> {
    let name = folder.file_name().and_then(OsStr::to_str);
    let Some(name) = name.filter(|name| !name.starts_with('.')) else { return Ok(None) };
    let path = folder.join(FACTS);
    let facts = match fs::read(&path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        facts => serde_json::from_slice::<Facts>(&facts.map_err(|e| at(&path, &e))?),
    };
    let Ok(facts) = facts else { return Ok(None) };
    let (image, modules) = (folder.join(&facts.image), folder.join(modules_place(&facts.release)));
    if !exists(&image)? {
        return Ok(None);
    }
    let kernel = Kernel {
        name: name.to_owned(),
        release: facts.release.clone(),
        arch: facts.arch.0,
        image,
        modules: if exists(&modules)? { Some(modules) } else { None },
        digest: facts.digest.clone(),
        folder: folder.to_owned(),
        seal: facts.seal.clone(),
        contents: facts.contents.clone(),
    };
    Ok(Some((kernel, facts)))
}

/// Whether a file or folder exists. An error where that can't be known.
pub fn exists(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|e| at(path, &e))
}

/// The folder of modules, relative to the root folder.
pub fn modules_place(release: &str) -> String {
    format!("lib/modules/{release}")
}

/// Copies folders and files without links, which lead from modules to sources.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(|e| at(to, &e))?;
    for entry in fs::read_dir(from).map_err(|e| at(from, &e))? {
        let entry = entry.map_err(|e| at(from, &e))?;
        let (kind, from) = (entry.file_type().map_err(|e| at(from, &e))?, entry.path());
        let to = to.join(entry.file_name());
        if kind.is_dir() {
            copy(&from, &to)?;
        } else if kind.is_file() {
            fs::copy(&from, &to).map_err(|e| at(&from, &e))?;
        }
    }
    Ok(())
}

/// Bytes in all readable files of a folder.
pub fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(there) if there.is_dir() => size(&entry.path()),
            Ok(there) => there.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Removes a folder if it exists. The programs that a killed latlab had started may still write into
/// it for a moment.
fn clear(folder: &Path) -> Result<()> {
    const ATTEMPTS: usize = 20;
    for _ in 0..ATTEMPTS {
        match fs::remove_dir_all(folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() != ErrorKind::DirectoryNotEmpty => return Err(at(folder, &e)),
            Err(_) => drop(clock::sleep_for(Nanos::from_millis(100))),
            Ok(()) => return Ok(()),
        }
    }
    Err(Failure::failed(format!("{}: another program writes into it", folder.display())))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    file::write_atomically(path, bytes).map_err(|e| at(path, &e))
}

fn json(facts: &Facts) -> Vec<u8> {
    serde_json::to_vec_pretty(facts).expect("facts are plain data")
}

fn at(path: &Path, error: &std::io::Error) -> Failure {
    failed(&path.display().to_string(), error)
}

/// A part of a version: digits are compared as a number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Piece {
    /// A run of digits.
    Number(u64),
    /// The text between numbers.
    Text(String),
}

/// The sort key of a version: 6.12.9 comes before 6.12.117.
pub fn version_key(version: &str) -> Vec<Piece> {
    let digit = |byte: &u8| byte.is_ascii_digit();
    let pieces = version.as_bytes().chunk_by(|a, b| digit(a) == digit(b));
    let text = pieces.map(|piece| String::from_utf8_lossy(piece).into_owned());
    text.map(|text| text.parse().map_or(Piece::Text(text), Piece::Number)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Notes;
    use super::*;
    use crate::arch::Arch;

    fn make(store: &Store, name: &str, release: &str, serves: &Source) -> Result<Kernel> {
        let mut nobody = |_: &str| ();
        let draft = store.begin(name, "testing", &mut Notes(&mut nobody))?;
        let image = Image { release: release.to_owned(), arch: Arch::usual(), boot: Boot::AsIs };
        let what = format!("from {name}");
        let origin =
            Origin { what, version: String::new(), serves: vec![serves.clone()], modules: None };
        draft.finish(name, release.as_bytes(), image, origin)
    }

    #[test]
    fn newest_returns_the_newest_release_that_serves_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::within(folder.path());
        let (series, other) = (Source::Package("s".to_owned()), Source::Package("o".to_owned()));
        for release in ["6.12.9", "6.12.117", "6.12.11"] {
            make(&store, release, release, &series).unwrap();
        }
        let kernel = make(&store, "6.12.200", "6.12.200", &other).unwrap();
        let newest =
            |source: &Source| store.newest(source).unwrap().map(|(kernel, _)| kernel.release);
        assert_eq!(newest(&series).as_deref(), Some("6.12.117"));
        assert_eq!(newest(&Source::Build("s".to_owned())), None);
        let facts = store.newest(&other).unwrap().unwrap().1;
        serve(&kernel, facts, series.clone()).unwrap();
        assert_eq!(newest(&series).as_deref(), Some("6.12.200"));
    }

    #[test]
    fn drafts_of_killed_processes_are_removed_by_the_next_draft() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::within(folder.path());
        let mut nobody = |_: &str| ();
        let held = store.begin("held", "testing", &mut Notes(&mut nobody)).unwrap();
        let left = folder.path().join("kernels/.draft-build-never-made-again");
        fs::create_dir_all(left.join("tree")).unwrap();
        make(&store, "x", "6.1", &Source::Added("x".to_owned())).unwrap();
        assert!(!left.exists() && held.folder.exists());
        drop(held);
        let names = fs::read_dir(folder.path().join("kernels")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".locks", "x"]);
    }

    #[test]
    fn changed_kernel_is_removed_and_not_the_one_stored_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::within(folder.path());
        let mine = Source::Added("x".to_owned());
        let remove = || store.remove_changed("x", &mut Notes(&mut |_| ())).unwrap();
        let kernel = make(&store, "x", "6.1", &mine).unwrap();
        assert!(!remove(), "it is as it was stored");
        fs::File::options().write(true).open(&kernel.image).unwrap().set_len(1).unwrap();
        assert_eq!(kernel.is_intact(), Ok(false));
        assert!(remove());
        assert_eq!(kernel.is_intact(), Ok(false), "another process has removed it");
        assert!(!remove());
        make(&store, "x", "6.1", &mine).unwrap();
        assert!(!remove(), "another process has stored it anew");
        assert_eq!(store.kernels().unwrap().len(), 1);
    }

    #[test]
    fn finish_replaces_only_a_kernel_of_the_same_origin() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::within(folder.path());
        let (mine, yours) = (Source::Added("x".to_owned()), Source::Build("x".to_owned()));
        make(&store, "x", "6.1", &mine).unwrap();
        assert_eq!(make(&store, "x", "6.2", &mine).unwrap().release, "6.2");
        let refused = make(&store, "x", "6.3", &yours).unwrap_err().to_string();
        assert!(refused.contains("there is a kernel 'x' already, from x"), "{refused}");
        assert_eq!(store.kernels().unwrap()[0].0.release, "6.2");
    }
}
