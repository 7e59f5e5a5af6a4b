//! Files in `/run/latlab` that stand for a right while they are locked.
//!
//! flock(2) asks for no more than a descriptor: whoever may read such a file could keep everybody
//! waiting. So only its owner may.

use crate::root::Root;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Where journals and claims lie, below the root.
pub(crate) const FOLDER: &str = "run/latlab";

/// Its owner may read and write it.
const OWN: u32 = 0o600;

/// The right to look at everybody's journals and to change one's own, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(File, PathBuf);

impl Turn {
    /// Waits until nobody else has it.
    pub(crate) fn take(root: &Root) -> io::Result<Turn> {
        let path = folder(root)?.join("turn");
        Ok(Turn(wait(&path)?, path))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Removed while it is locked: who waits for it sees that it is another by then.
        let _ = fs::remove_file(&self.1);
        let _ = self.0.unlock();
    }
}

/// The folder of journals and claims, made where it is not there. Everybody may look into it: the
/// socket is there (see [`crate::listener`]).
pub(crate) fn folder(root: &Root) -> io::Result<PathBuf> {
    let folder = root.path(FOLDER);
    DirBuilder::new().recursive(true).mode(0o755).create(&folder)?;
    Ok(folder)
}

/// The file of this path, locked, made where it is not there. None where somebody else has it.
pub(crate) fn take(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(Some(file)),
            // Who had it has taken it away, or put another there, before it was locked.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// The same; waits where somebody else has it.
pub(crate) fn wait(path: &Path) -> io::Result<File> {
    loop {
        let file = open(path)?;
        file.lock()?;
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// A file that is there, locked. None where somebody else has it or it can't be opened.
pub(crate) fn found(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    (file.try_lock().is_ok() && is_at(&file, path)).then_some(file)
}

/// Takes away what a process that was killed has left. Whether it was that.
pub(crate) fn sweep(path: &Path) -> bool {
    // Removed while it is locked, as by its owner.
    found(path).is_some_and(|_locked| fs::remove_file(path).is_ok())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(OWN).open(path)?;
    if file.metadata()?.mode() & 0o777 != OWN {
        file.set_permissions(Permissions::from_mode(OWN))?;
    }
    Ok(file)
}

/// Whether this is the file that is found at this path, not one that was.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |there: fs::Metadata| (there.dev(), there.ino());
    let there = fs::metadata(path).ok().map(identity);
    there.is_some() && file.metadata().ok().map(identity) == there
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn the_file_that_is_locked_is_the_one_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.journal");
        let first = take(&path).unwrap().unwrap();
        assert!(take(&path).unwrap().is_none() && found(&path).is_none() && !sweep(&path));
        assert!(is_at(&first, &path));
        // Its owner puts another there, as a journal that is written anew.
        let other = folder.path().join("new");
        let second = take(&other).unwrap().unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!is_at(&first, &path) && is_at(&second, &path));
        drop(first);
        assert!(found(&path).is_none(), "the lock has come along");
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&second, &path));
        assert!(take(&path).unwrap().is_some(), "what was taken away is nobody's");
    }

    /// Who waits for a file gets the one that is there when it is free, and none that has gone.
    #[test]
    fn who_waits_does_not_end_with_what_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let (told, count) = mpsc::channel();
        let all: Vec<_> = (0..4)
            .map(|_| {
                let (root, told) = (root.clone(), told.clone());
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        let turn = Turn::take(&root).unwrap();
                        assert!(is_at(&turn.0, &turn.1));
                        told.send(1).unwrap();
                        assert!(found(&turn.1).is_none(), "nobody else has it");
                        told.send(-1).unwrap();
                    }
                })
            })
            .collect();
        drop(told);
        let most = count.iter().scan(0, |sum, step| {
            *sum += step;
            Some(*sum)
        });
        assert_eq!(most.max(), Some(1));
        for thread in all {
            thread.join().unwrap();
        }
        assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn only_the_owner_may_open_it_whoever_has_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("adapt.lock");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        drop(take(&path).unwrap().unwrap());
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        drop(wait(&path).unwrap());
        assert_eq!(mode(), 0o600);
    }

    /// What used to be locked can be read by everybody: it keeps nobody waiting any more.
    #[test]
    fn who_locks_the_folder_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let held = File::open(super::folder(&root).unwrap()).unwrap();
        held.lock().unwrap();
        let (told, turn) = mpsc::channel();
        std::thread::spawn(move || told.send(Turn::take(&root).is_ok()));
        assert_eq!(turn.recv_timeout(Duration::from_secs(10)), Ok(true));
    }
}
