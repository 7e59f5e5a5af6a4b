//! The cache of kernels: a folder for each, which appears whole or not at all.
//!
//! A kernel is made in a draft, a hidden folder beside the kernels that is locked while somebody
//! works on it, and gets its name by being renamed. A draft that nobody holds was left by a
//! process that was killed; the next that begins the same removes it.

use super::image::{Boot, Image};
use super::{Kernel, Progress, Source, cache, digest, work};
use crate::failure::{Failure, Result, failed};
use latlab_sys::file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// What is kept beside a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    release: String,
    /// The name of the file that QEMU gets.
    image: String,
    digest: String,
    #[serde(flatten)]
    pub(crate) origin: Origin,
}

/// What a kernel was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The package, the file, or for a build the digest of its recipe.
    pub(crate) what: String,
    /// The version of the package, or of the source that was built; empty for a file.
    pub(crate) version: String,
    /// What profiles may call it.
    pub(crate) serves: Vec<Source>,
}

impl Origin {
    /// What it was made from, in a few words.
    pub(crate) fn from(&self) -> String {
        match self.serves.first() {
            Some(Source::Build(_)) => format!("built of source {}", self.version),
            Some(Source::Package(_)) => format!("package version {}", self.version),
            _ => format!("file {}", self.what),
        }
    }
}

/// The file that makes a folder a kernel.
const FACTS: &str = "kernel.json";

/// The folder of all kernels.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(crate) fn open() -> Result<Store> {
        Ok(Store::within(&cache()?))
    }

    /// The kernels of a cache.
    pub(crate) fn within(cache: &Path) -> Store {
        Store { folder: cache.join("kernels") }
    }

    /// All kernels that are whole, from the oldest release to the newest.
    pub(crate) fn kernels(&self) -> Result<Vec<(Kernel, Facts)>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|e| at(&self.folder, &e))?,
        };
        let folders = entries.flatten().map(|entry| entry.path());
        let mut kernels: Vec<_> = folders.filter_map(|folder| kernel(&folder)).collect();
        kernels
            .sort_by_cached_key(|(kernel, _)| (version_key(&kernel.release), kernel.name.clone()));
        Ok(kernels)
    }

    /// The newest kernel that serves `source`.
    pub(crate) fn newest(&self, source: &Source) -> Result<Option<(Kernel, Facts)>> {
        let mut kernels = self.kernels()?.into_iter();
        Ok(kernels.rfind(|(_, facts)| facts.origin.serves.contains(source)))
    }

    /// Removes a kernel: first its name, then what is in it.
    pub(crate) fn remove(&self, kernel: &Kernel, progress: &mut dyn Progress) -> Result<()> {
        let name = &kernel.name;
        let draft = self.begin(&format!("remove-{name}"), &format!("removing {name}"), progress)?;
        let away = draft.folder.join("removed");
        fs::rename(&kernel.folder, away).map_err(|e| at(&kernel.folder, &e))
    }

    /// Begins what only one process at a time may do, waiting for another that does `what`.
    pub(crate) fn begin(
        &self,
        key: &str,
        what: &str,
        progress: &mut dyn Progress,
    ) -> Result<Draft> {
        let locks = self.folder.join(".locks");
        fs::create_dir_all(&locks).map_err(|e| at(&locks, &e))?;
        let path = locks.join(key);
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(|e| at(&path, &e))?;
        let mut told = false;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(e)) => return Err(at(&path, &e)),
                Err(TryLockError::WouldBlock) if !told => {
                    progress.note(&format!("another latlab is {what}: waiting for it"));
                    told = true;
                }
                Err(TryLockError::WouldBlock) if progress.pause() => {
                    return Err(work::interrupted());
                }
                Err(TryLockError::WouldBlock) => {}
            }
        }
        let folder = self.folder.join(format!(".draft-{key}"));
        clear(&folder)?;
        fs::create_dir(&folder).map_err(|e| at(&folder, &e))?;
        Ok(Draft { kernels: self.folder.clone(), folder, _lock: lock })
    }
}

/// A folder in which a kernel is made. Dropping it removes what is in it.
#[derive(Debug)]
pub(crate) struct Draft {
    kernels: PathBuf,
    pub(crate) folder: PathBuf,
    /// Given back last, when the folder is gone.
    _lock: File,
}

impl Draft {
    /// Fails where there is less space than will be needed.
    pub(crate) fn need_space(&self, bytes: u64) -> Result<()> {
        let free = file::free_space(&self.folder).map_err(|e| at(&self.folder, &e))?;
        if free >= bytes {
            return Ok(());
        }
        let (mega, folder) = (|bytes| bytes / 1_000_000, self.kernels.display());
        Err(Failure::Failed(format!(
            "{folder}: it takes {} MB and {} MB are free: latlab kernel remove makes space",
            mega(bytes),
            mega(free)
        )))
    }

    /// The folder that becomes the kernel's, made on demand.
    fn whole(&self) -> Result<PathBuf> {
        let whole = self.folder.join("whole");
        fs::create_dir_all(&whole).map_err(|e| at(&whole, &e))?;
        Ok(whole)
    }

    /// Takes a file or folder into the kernel's folder, from elsewhere in this draft.
    pub(crate) fn take(&self, from: &Path, place: &str) -> Result<()> {
        let to = self.whole()?.join(place);
        let folder = to.parent().expect("it lies in the draft");
        fs::create_dir_all(folder).map_err(|e| at(folder, &e))?;
        fs::rename(from, &to).map_err(|e| at(&to, &e))
    }

    /// Copies modules from elsewhere on the machine.
    pub(crate) fn copy_modules(&self, from: &Path, release: &str) -> Result<()> {
        copy(from, &self.whole()?.join(modules_place(release)))
    }

    /// Gives the kernel that came in a file of these `bytes` its name. One of the same name
    /// from elsewhere stays, and it fails.
    pub(crate) fn finish(
        self,
        name: &str,
        bytes: &[u8],
        image: Image,
        origin: Origin,
    ) -> Result<Kernel> {
        let (file, bytes, digest) = match &image.boot {
            Boot::Vmlinux(vmlinux) => ("vmlinux", vmlinux.as_slice(), digest(bytes)),
            Boot::AsIs => ("image", bytes, digest(bytes)),
        };
        let facts = Facts { release: image.release, image: file.to_owned(), digest, origin };
        let whole = self.whole()?;
        write(&whole.join(file), bytes)?;
        write(&whole.join(FACTS), &json(&facts))?;
        let place = self.kernels.join(name);
        if let Some((_, there)) = kernel(&place)
            && there.origin.serves.first() != facts.origin.serves.first()
        {
            return Err(Failure::Failed(format!(
                "there is a kernel '{name}' already, {}: give another --name, or remove it first",
                there.origin.what
            )));
        }
        if place.exists() {
            fs::rename(&place, self.folder.join("replaced")).map_err(|e| at(&place, &e))?;
        }
        fs::rename(&whole, &place).map_err(|e| at(&place, &e))?;
        Ok(kernel(&place).expect("it was just made").0)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // What stays is removed by the next.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// From now on the kernel serves this source, too.
pub(crate) fn serve(kernel: &Kernel, mut facts: Facts, source: Source) -> Result<()> {
    if facts.origin.serves.contains(&source) {
        return Ok(());
    }
    facts.origin.serves.push(source);
    write(&kernel.folder.join(FACTS), &json(&facts))
}

/// The kernel in a folder, where there is a whole one.
fn kernel(folder: &Path) -> Option<(Kernel, Facts)> {
    let name = folder.file_name()?.to_str().filter(|name| !name.starts_with('.'))?;
    let facts: Facts = serde_json::from_slice(&fs::read(folder.join(FACTS)).ok()?).ok()?;
    let modules = folder.join(modules_place(&facts.release));
    let kernel = Kernel {
        name: name.to_owned(),
        release: facts.release.clone(),
        image: Some(folder.join(&facts.image)).filter(|image| image.is_file())?,
        modules: Some(modules).filter(|modules| modules.is_dir()),
        digest: facts.digest.clone(),
        folder: folder.to_owned(),
    };
    Some((kernel, facts))
}

/// Where modules lie, below a root folder.
pub(crate) fn modules_place(release: &str) -> String {
    format!("lib/modules/{release}")
}

/// Copies folders and files; links lead out of a folder of modules, to sources, and are left out.
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

/// Bytes in all files of a folder; what can't be read counts nothing.
pub(crate) fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(there) if there.is_dir() => size(&entry.path()),
            Ok(there) => there.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Removes a folder that may not be there.
fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(at(folder, &e)),
        _ => Ok(()),
    }
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

/// One piece of a version: digits count as a number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Piece {
    Number(u64),
    Text(String),
}

/// What versions are ordered by: 6.12.9 comes before 6.12.117.
pub(crate) fn version_key(version: &str) -> Vec<Piece> {
    let digit = |byte: &u8| byte.is_ascii_digit();
    let pieces = version.as_bytes().chunk_by(|a, b| digit(a) == digit(b));
    let text = pieces.map(|piece| String::from_utf8_lossy(piece).into_owned());
    text.map(|text| text.parse().map_or(Piece::Text(text), Piece::Number)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Notes;
    use super::*;

    fn make(store: &Store, name: &str, release: &str, serves: &Source) -> Result<Kernel> {
        let mut nobody = |_: &str| ();
        let draft = store.begin(name, "testing", &mut Notes(&mut nobody))?;
        let image = Image { release: release.to_owned(), boot: Boot::AsIs };
        let what = format!("from {name}");
        let origin = Origin { what, version: String::new(), serves: vec![serves.clone()] };
        draft.finish(name, release.as_bytes(), image, origin)
    }

    #[test]
    fn the_newest_release_serves() {
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
    fn a_name_is_replaced_only_by_its_own() {
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
