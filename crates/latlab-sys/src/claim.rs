//! Claims: work that only one latlab at a time may do on a machine.

use crate::lock::{self, FOLDER};
use crate::root::Root;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// A piece of work that only one latlab at a time may do. Given back when dropped, however the
/// process ends.
#[derive(Debug)]
pub struct Claim(File, PathBuf);

/// Why a [`Claim`] is refused.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another latlab has it; its process number, where it could be read.
    #[error("another latlab (process {0}) does that already")]
    Taken(String),
    /// The file that stands for it can't be made.
    #[error("{0} can't be written: {1}")]
    Failed(String, io::Error),
}

impl Claim {
    /// The right to do the work of this name on the machine under `root`.
    pub fn take(root: &Root, name: &str) -> Result<Claim, ClaimError> {
        let path = root.path(FOLDER).join(format!("{name}.lock"));
        let failed = |e| ClaimError::Failed(path.display().to_string(), e);
        lock::folder(root).map_err(failed)?;
        let Some(mut file) = lock::take(&path).map_err(failed)? else {
            let said = fs::read_to_string(&path).unwrap_or_default();
            return Err(ClaimError::Taken(said.trim().to_owned()));
        };
        let pid = std::process::id().to_string();
        file.set_len(0).and_then(|()| file.write_all(pid.as_bytes())).map_err(failed)?;
        Ok(Claim(file, path))
    }
}

/// Takes away what processes that were killed had claimed.
pub(crate) fn sweep(root: &Root) {
    let entries = fs::read_dir(root.path(FOLDER)).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "lock")) {
        // Whoever holds it lives.
        if let Some(_locked) = lock::found(&path) {
            // Where its owner listened for others nobody does any more.
            let _ = fs::remove_file(path.with_extension("sock"));
            let _ = fs::remove_file(&path);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Removed while it is locked, so that nobody finds it unlocked.
        let _ = fs::remove_file(&self.1);
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn one_has_it_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let first = Claim::take(&root, "adapt").unwrap();
        let refused = Claim::take(&root, "adapt").unwrap_err().to_string();
        let pid = std::process::id();
        assert_eq!(refused, format!("another latlab (process {pid}) does that already"));
        let mode = first.0.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "nobody else may lock it");
        drop(first);
        let second = Claim::take(&root, "adapt").unwrap();
        drop(second);
        assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn what_a_killed_process_left_is_nobody_s() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        fs::create_dir_all(root.path(FOLDER)).unwrap();
        let mut left = File::create(root.path(FOLDER).join("adapt.lock")).unwrap();
        left.write_all(b"123456").unwrap();
        let claim = Claim::take(&root, "adapt").unwrap();
        sweep(&root);
        assert!(Claim::take(&root, "adapt").is_err(), "who lives keeps it");
        drop(claim);
    }

    #[test]
    fn what_a_killed_process_left_is_swept_away() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        fs::create_dir_all(root.path(FOLDER)).unwrap();
        File::create(root.path(FOLDER).join("adapt.lock")).unwrap();
        File::create(root.path(FOLDER).join("adapt.sock")).unwrap();
        sweep(&root);
        assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0);
    }
}
