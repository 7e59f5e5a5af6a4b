//! Seals of files in the cache: whether a file is still as it was written.

use super::kernel::digest;
use latlab_sys::file;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Attributes of a file that change with its contents. They can be compared in no time; the digest
/// of a guest's memory takes longer than the whole rest of its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    inode: u64,
    bytes: u64,
    /// Time of the last change, seconds and nanoseconds.
    changed: (i64, i64),
}

impl Identity {
    pub(super) fn of(file: &File) -> io::Result<Identity> {
        let there = file.metadata()?;
        let changed = (there.ctime(), there.ctime_nsec());
        Ok(Identity { inode: there.ino(), bytes: there.len(), changed })
    }
}

/// The identity of a file, and the digest of its contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seal {
    digest: String,
    identity: Identity,
}

impl Seal {
    /// The seal of the file at `path`, which was just written with these contents.
    pub(super) fn of(path: &Path, contents: &[u8]) -> io::Result<Seal> {
        Ok(Seal { digest: digest(contents), identity: Identity::of(&File::open(path)?)? })
    }

    /// Whether the file at `path` is as it was written; an error where it can't be read. Its contents
    /// are only read where its identity differs, as in a cache that was copied.
    pub(super) fn holds(&self, path: &Path) -> io::Result<bool> {
        let is_same = Identity::of(&File::open(path)?)? == self.identity;
        Ok(is_same || digest(&std::fs::read(path)?) == self.digest)
    }
}

/// Whether the file at `path` has a seal beside it, and is as it was when that was put.
pub(super) fn is_intact(path: &Path) -> io::Result<bool> {
    let seal = match std::fs::read(beside(path)) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        seal => serde_json::from_slice::<Seal>(&seal?),
    };
    match seal.map(|seal| seal.holds(path)) {
        Ok(Err(e)) if e.kind() == ErrorKind::NotFound => Ok(false),
        Ok(holds) => holds,
        // The seal itself was changed.
        Err(_) => Ok(false),
    }
}

/// Puts a seal beside the file at `path`, which was just written with these contents.
pub(super) fn put(path: &Path, contents: &[u8]) -> io::Result<()> {
    let seal = Seal::of(path, contents)?;
    file::write_atomically(&beside(path), &serde_json::to_vec(&seal)?)
}

/// Writes a file, and its seal beside it.
pub(super) fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    file::write_atomically(path, contents)?;
    put(path, contents)
}

/// The contents of a file that has a seal beside it; none where it is not as it was written, or can't
/// be read.
pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    if is_intact(path).ok()? { std::fs::read(path).ok() } else { None }
}

fn beside(path: &Path) -> PathBuf {
    path.with_added_extension("seal")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::time::Nanos;
    use latlab_sys::clock;
    use latlab_sys::file::write_atomically;
    use std::os::unix::fs::FileExt as _;

    #[test]
    fn seal_holds_for_a_copy_and_not_for_a_changed_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("file"), folder.path().join("copy"));
        write_atomically(&path, b"contents").unwrap();
        let seal = Seal::of(&path, b"contents").unwrap();
        assert!(seal.holds(&path).unwrap());
        std::fs::copy(&path, &copy).unwrap();
        assert!(seal.holds(&copy).unwrap());
        let file = File::options().write(true).open(&path).unwrap();
        // The file system may count time in ticks.
        clock::sleep_for(Nanos::from_millis(20));
        file.write_all_at(b"C", 0).unwrap();
        assert!(!seal.holds(&path).unwrap());
        file.write_all_at(b"c", 0).unwrap();
        assert!(seal.holds(&path).unwrap());
        // A failed read says nothing about the file.
        seal.holds(folder.path()).unwrap_err();
    }
}
