//! Lock files, in `/run/latlab` and in the cache.
//!
//! flock(2) needs no more than an open file: every user who may open a lock file could block all
//! others. So only the owner may open it.

use crate::root::Root;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The folder of journals and claims, below the root.
pub(crate) const FOLDER: &str = "run/latlab";

/// The mode of lock files: only the owner may read and write them.
const OWN: u32 = 0o600;

/// A lock file that this process holds. Dropping it removes the file and releases the lock.
#[derive(Debug)]
pub struct LockFile(File, PathBuf);

impl LockFile {
    /// Locks the file at this path, which is created if it does not exist. None where another
    /// process has it.
    ///
    /// # Errors
    ///
    /// The file can't be created or locked.
    pub fn take(path: &Path) -> io::Result<Option<LockFile>> {
        Ok(take(path)?.map(|file| LockFile(file, path.to_owned())))
    }

    /// The exclusive right to read all journals and to change one's own. Waits until no other
    /// process has it.
    pub(crate) fn of_journals(root: &Root) -> io::Result<LockFile> {
        let path = folder(root)?.join("turn");
        Ok(LockFile(wait(&path)?, path))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Removed while it is locked: a process that waits for it then takes the new file.
        let _ = fs::remove_file(&self.1);
        let _ = self.0.unlock();
    }
}

/// Creates the folder of journals and claims if it does not exist. All users may enter it: the
/// socket is there (see [`crate::listener`]).
pub(crate) fn folder(root: &Root) -> io::Result<PathBuf> {
    let folder = root.path(FOLDER);
    DirBuilder::new().recursive(true).mode(0o755).create(&folder)?;
    Ok(folder)
}

/// Locks the file at this path, which is created if it does not exist. None where another process
/// has locked it.
pub(crate) fn take(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => return Ok(Some(file)),
            // Its owner removed or replaced it before it was locked here.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Locks the file as [`take`] does, and waits where another process has locked it.
pub(crate) fn wait(path: &Path) -> io::Result<File> {
    loop {
        let file = open(path)?;
        uninterrupted(|| file.lock())?;
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
}

/// Waits by this call, again where a signal has interrupted it.
fn uninterrupted(mut wait: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

/// A file that may exist, and may be locked.
#[derive(Debug)]
pub(crate) enum Found {
    /// It is locked for the caller now.
    Free(File),
    /// Another process has locked it.
    InUse,
    /// There is no such file.
    Gone,
}

/// Locks a file if it exists.
pub(crate) fn found(path: &Path) -> io::Result<Found> {
    loop {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Gone),
            file => file?,
        };
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => return Ok(Found::Free(file)),
            // Its owner removed or replaced it before it was locked here.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Found::InUse),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Removes the file if its owner was killed. Returns whether it was removed.
pub(crate) fn sweep(path: &Path) -> bool {
    // Removed while it is locked, as its owner would.
    matches!(found(path), Ok(Found::Free(_locked)) if fs::remove_file(path).is_ok())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(OWN).open(path)?;
    if file.metadata()?.mode() & 0o777 != OWN {
        file.set_permissions(Permissions::from_mode(OWN))?;
    }
    Ok(file)
}

/// Whether this is still the file at this path. An error where that can't be known.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => Ok(identity(found?) == identity(file.metadata()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn lock_is_taken_on_the_file_that_is_at_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.journal");
        let first = take(&path).unwrap().unwrap();
        assert!(take(&path).unwrap().is_none() && !sweep(&path));
        assert!(matches!(found(&path).unwrap(), Found::InUse));
        assert!(is_at(&first, &path).unwrap());
        // Its owner replaces it, as a journal that is written again.
        let other = folder.path().join("new");
        let second = take(&other).unwrap().unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!is_at(&first, &path).unwrap() && is_at(&second, &path).unwrap());
        drop(first);
        assert!(matches!(found(&path).unwrap(), Found::InUse), "the lock belongs to the new file");
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&second, &path).unwrap());
        assert!(matches!(found(&path).unwrap(), Found::Gone));
        assert!(take(&path).unwrap().is_some(), "a removed file is not locked");
    }

    #[test]
    fn lock_wait_returns_the_present_file_not_a_removed_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let (sender, count) = mpsc::channel();
        let all: Vec<_> = (0..4)
            .map(|_| {
                let (root, sender) = (root.clone(), sender.clone());
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        let turn = LockFile::of_journals(&root).unwrap();
                        assert!(is_at(&turn.0, &turn.1).unwrap());
                        sender.send(1).unwrap();
                        assert!(
                            matches!(found(&turn.1).unwrap(), Found::InUse),
                            "only this thread has it"
                        );
                        sender.send(-1).unwrap();
                    }
                })
            })
            .collect();
        drop(sender);
        let most = count.iter().scan(0, |sum, step| {
            *sum += step;
            Some(*sum)
        });
        assert_eq!(most.max(), Some(1));
        for thread in all {
            thread.join().unwrap();
        }
        assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0, "the file is removed");
    }

    #[test]
    fn lock_wait_goes_on_after_a_signal() {
        let mut answers = vec![Ok(()), Err(io::ErrorKind::Interrupted.into())];
        uninterrupted(|| answers.pop().unwrap()).unwrap();
        assert!(answers.is_empty());
        assert!(uninterrupted(|| Err(io::ErrorKind::Other.into())).is_err());
    }

    #[test]
    fn lock_file_is_only_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("adapt.lock");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        drop(take(&path).unwrap().unwrap());
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        drop(wait(&path).unwrap());
        assert_eq!(mode(), 0o600);
    }

    /// All users can open the folder.
    #[test]
    fn lock_is_not_blocked_by_a_lock_on_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let held = File::open(super::folder(&root).unwrap()).unwrap();
        held.lock().unwrap();
        let turn = std::thread::spawn(move || LockFile::of_journals(&root).is_ok());
        let patience = Duration::from_secs(10);
        latlab_testing::wait_at_most(patience, "the journals are locked", || turn.is_finished());
        assert!(turn.join().unwrap());
    }
}
