//! Claims: locks on work that only one latlab at a time may do on a machine.

use crate::clock;
use crate::lock::{self, FOLDER, Found};
use crate::procfs::Life;
use crate::root::Root;
use latlab_core::time::Nanos;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// How long a claim that no living process seems to have is waited for.
const PATIENCE: Nanos = Nanos::from_secs(3);
const STEP: Nanos = Nanos::from_millis(5);

/// A claim on a kind of work. It ends when it is dropped, and when the process ends, in whatever
/// way.
#[derive(Debug)]
pub struct Claim(File, PathBuf);

/// Why a [`Claim`] is refused.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another latlab has it. Contains its process id, if that could be read.
    #[error("another latlab (process {0}) is doing this already")]
    Taken(String),
    /// Its lock file can't be written.
    #[error("{0} can't be written: {1}")]
    Failed(String, io::Error),
}

impl Claim {
    /// Takes the claim of this name on the machine below `root`.
    pub fn take(root: &Root, name: &str) -> Result<Claim, ClaimError> {
        let path = root.path(FOLDER).join(format!("{name}.lock"));
        let failed = |e| ClaimError::Failed(path.display().to_string(), e);
        lock::folder(root).map_err(failed)?;
        let end = clock::now() + PATIENCE;
        let mut file = loop {
            if let Some(file) = lock::take(&path).map_err(failed)? {
                break file;
            }
            let said = fs::read_to_string(&path).unwrap_or_default();
            if is_alive(said.trim()) || clock::now() >= end {
                return Err(ClaimError::Taken(said.trim().to_owned()));
            }
            clock::sleep_for(STEP);
        };
        let pid = std::process::id().to_string();
        file.set_len(0).and_then(|()| file.write_all(pid.as_bytes())).map_err(failed)?;
        Ok(Claim(file, path))
    }
}

/// Whether there is a process of this number that does not end. If there is none, the file is
/// locked only for a moment: each latlab that starts removes the claims of killed ones ([`sweep`]),
/// and may find a claim that has just been made.
fn is_alive(process: &str) -> bool {
    let life = process.parse().map(Life::of);
    life.is_ok_and(|life| !matches!(life, Ok(Life::Ending | Life::Gone)))
}

/// Removes the claims of processes that were killed.
pub(crate) fn sweep(root: &Root) {
    let entries = fs::read_dir(root.path(FOLDER)).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock")) {
        // It can be locked only if its owner has ended.
        if let Ok(Found::Free(_locked)) = lock::found(&path) {
            // The socket of its owner ([`crate::listener`]).
            let _ = fs::remove_file(path.with_extension("sock"));
            let _ = fs::remove_file(&path);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Removed while it is locked, so that no process finds it unlocked.
        let _ = fs::remove_file(&self.1);
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn claim_is_exclusive_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let first = Claim::take(&root, "adapt").unwrap();
        let refused = Claim::take(&root, "adapt").unwrap_err().to_string();
        let pid = std::process::id();
        assert_eq!(refused, format!("another latlab (process {pid}) is doing this already"));
        let mode = first.0.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "no other user may lock it");
        drop(first);
        let second = Claim::take(&root, "adapt").unwrap();
        drop(second);
        assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0, "the file is removed");
    }

    #[test]
    fn claim_of_a_killed_process_can_be_taken() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        fs::create_dir_all(root.path(FOLDER)).unwrap();
        let mut left = File::create(root.path(FOLDER).join("adapt.lock")).unwrap();
        left.write_all(b"123456").unwrap();
        let claim = Claim::take(&root, "adapt").unwrap();
        sweep(&root);
        assert!(Claim::take(&root, "adapt").is_err(), "a claim in use stays");
        drop(claim);
    }

    /// As when another latlab looks whether its owner was killed.
    #[test]
    fn claim_that_is_locked_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        fs::create_dir_all(root.path(FOLDER)).unwrap();
        let waiter = crate::sched::thread_id();
        for content in ["", "4194305"] {
            let path = root.path(FOLDER).join("adapt.lock");
            let mut swept = lock::take(&path).unwrap().unwrap();
            swept.write_all(content.as_bytes()).unwrap();
            let sweep = std::thread::spawn(move || {
                latlab_testing::wait_until_asleep(waiter);
                fs::remove_file(path).unwrap();
                drop(swept);
            });
            drop(Claim::take(&root, "adapt").expect("it is free in a moment"));
            sweep.join().unwrap();
        }
    }

    #[test]
    fn claim_of_a_killed_process_is_removed_with_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        fs::create_dir_all(root.path(FOLDER)).unwrap();
        File::create(root.path(FOLDER).join("adapt.lock")).unwrap();
        File::create(root.path(FOLDER).join("adapt.sock")).unwrap();
        sweep(&root);
        assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0);
    }
}
