//! A journal: the file that says what a run has changed.

use super::entry::Entry;
use crate::lock::{self, FOLDER};
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What a journal holds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Entries {
    pub(super) pid: u32,
    pub(super) entries: Vec<Entry>,
}

/// A journal that is ours while we live: nobody else can lock it.
#[derive(Debug)]
pub(super) struct Journal(File, PathBuf);

impl Journal {
    /// One of this process, empty; where another guard of it has one, or one of its number has
    /// left one that is still to be mended, one more.
    pub(super) fn begin(folder: &Path) -> io::Result<Journal> {
        let pid = std::process::id();
        let mut path = folder.join(format!("{pid}.journal"));
        let mut nth = 1;
        loop {
            if let Some(file) = lock::take(&path)?
                && file.metadata()?.len() == 0
            {
                return Ok(Journal(file, path));
            }
            nth += 1;
            path = folder.join(format!("{pid}-{nth}.journal"));
        }
    }

    /// One whose owner has died. None where its owner lives, or another latlab has it.
    pub(super) fn left(path: &Path) -> Option<Journal> {
        Some(Journal(lock::found(path)?, path.to_owned()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.1
    }

    /// Has it say this. Whoever is killed meanwhile has left what it said before, or this: a write
    /// of more than a page may end with a part of it, so another file takes its place.
    pub(super) fn write(&mut self, entries: &Entries) -> io::Result<()> {
        let text = serde_json::to_vec(entries).expect("a journal is plain data");
        let next = self.1.with_extension("journal.new");
        let mut file = lock::wait(&next)?;
        let written = file
            .set_len(0)
            .and_then(|()| file.write_all(&text))
            .and_then(|()| file.sync_data())
            .and_then(|()| fs::rename(&next, &self.1));
        match written {
            // The one before is unlocked only now: there is no moment without a locked journal.
            Ok(()) => self.0 = file,
            Err(_) => drop(fs::remove_file(&next)),
        }
        written
    }

    /// There is nothing to give back any more.
    pub(super) fn end(self) {
        // Removed before it is unlocked, so that nobody finds it unlocked.
        let _ = fs::remove_file(&self.1);
    }
}

/// All journals, whosever.
pub(super) fn journals(root: &Root) -> Vec<PathBuf> {
    files(root, "journal")
}

/// Takes away what somebody was killed over that was writing a journal.
pub(super) fn sweep(root: &Root) {
    for path in files(root, "new") {
        lock::sweep(&path);
    }
}

fn files(root: &Root, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.path(FOLDER)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|its| its == extension))
        .collect();
    paths.sort();
    paths
}

/// What a journal says; None where it is damaged.
pub(super) fn read(path: &Path) -> Option<Entries> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
