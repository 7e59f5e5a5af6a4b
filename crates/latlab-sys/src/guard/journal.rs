//! Journals: the files that list what a run has changed.

use super::entry::Entry;
use crate::lock::{self, FOLDER, Found};
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The content of a journal.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) pid: u32,
    pub(super) entries: Vec<Entry>,
}

/// The result of taking over a journal.
#[derive(Debug)]
pub(super) enum TakeOver {
    /// This process has it now.
    Done(Journal),
    /// Its owner has not ended wholly, or another latlab has taken it over.
    InUse,
    /// There is no such journal.
    Gone,
}

/// A journal that this process has locked.
#[derive(Debug)]
pub(super) struct Journal(File, PathBuf);

impl Journal {
    /// Creates a journal of this process, empty. It gets a further number where another guard of
    /// the process has one, or a killed process of the same number left one.
    pub(super) fn begin(folder: &Path) -> io::Result<Journal> {
        let pid = std::process::id();
        let mut path = folder.join(format!("{pid}.journal"));
        let mut number = 1;
        loop {
            if let Some(file) = lock::take(&path)?
                && file.metadata()?.len() == 0
            {
                return Ok(Journal(file, path));
            }
            number += 1;
            path = folder.join(format!("{pid}-{number}.journal"));
        }
    }

    /// Takes over a journal whose owner has ended.
    pub(super) fn take_over(path: &Path) -> io::Result<TakeOver> {
        Ok(match lock::found(path)? {
            Found::Free(file) => TakeOver::Done(Journal(file, path.to_owned())),
            Found::InUse => TakeOver::InUse,
            Found::Gone => TakeOver::Gone,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.1
    }

    /// Replaces the content. If the process is killed meanwhile, the journal has the old or the new
    /// content: a new file takes its place, since a write of more than a page may be cut short.
    pub(super) fn write(&mut self, content: &Content) -> io::Result<()> {
        let text = serde_json::to_vec(content)?;
        let next = self.1.with_extension("journal.new");
        let mut file = lock::wait(&next)?;
        let written = file
            .set_len(0)
            .and_then(|()| file.write_all(&text))
            .and_then(|()| file.sync_data())
            .and_then(|()| fs::rename(&next, &self.1));
        match written {
            // The old file is unlocked only now: there is a locked journal at any time.
            Ok(()) => self.0 = file,
            Err(_) => drop(fs::remove_file(&next)),
        }
        written
    }

    /// Leaves these entries for the next latlab to restore; removes the journal where there are
    /// none. After an error it lists more: the next latlab would take what somebody sets meanwhile
    /// for a change of this run.
    pub(super) fn close(mut self, remaining: &Content) -> io::Result<()> {
        if remaining.entries.is_empty() {
            return self.remove();
        }
        let written = self.write(remaining);
        // A process that another thread has just forked has the file open, too, until it starts its
        // program: closing the file here would not unlock it.
        let _ = self.0.unlock();
        written
    }

    /// Removes the journal or, where that is impossible, its content.
    pub(super) fn remove(self) -> io::Result<()> {
        // Removed before it is unlocked, so that no process finds it unlocked.
        match fs::remove_file(&self.1) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.0.set_len(0).map_err(|_| error)
            }
            _ => Ok(()),
        }
    }
}

/// The paths of all journals.
pub(super) fn journals(root: &Root) -> io::Result<Vec<PathBuf>> {
    files(root, "journal")
}

/// The paths of the journals that were damaged, and still wait for somebody to look at them.
pub(super) fn damaged(root: &Root) -> io::Result<Vec<PathBuf>> {
    files(root, DAMAGED)
}

/// Keeps a damaged journal under another name, beside an earlier one of a process of the same number.
pub(super) fn set_aside(path: &Path) -> io::Result<()> {
    let mut to = path.with_extension(DAMAGED);
    let mut number = 1;
    while to.try_exists()? {
        number += 1;
        to = path.with_extension(format!("{number}.{DAMAGED}"));
    }
    fs::rename(path, to)
}

/// Removes files that processes were writing when they were killed.
pub(super) fn sweep(root: &Root) {
    for path in files(root, "new").unwrap_or_default() {
        lock::sweep(&path);
    }
}

/// The content of a journal. It is damaged if the error [`is_damage`]; other errors say nothing
/// about it.
pub(super) fn read(root: &Root, path: &Path) -> io::Result<Content> {
    parse(root, &fs::read(path)?)
}

/// The content in the bytes of a journal.
pub(super) fn parse(root: &Root, bytes: &[u8]) -> io::Result<Content> {
    let content: Content = serde_json::from_slice(bytes)?;
    if content.entries.iter().all(|entry| entry.is_known(root)) {
        return Ok(content);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it lists what latlab never changes"))
}

/// Whether reading a journal failed because it is damaged.
pub(super) fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Extension of damaged journals.
const DAMAGED: &str = "damaged";

fn files(root: &Root, extension: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(root.path(FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    let is_one = |path: &PathBuf| path.extension().is_some_and(|its| its == extension);
    let mut paths: Vec<PathBuf> = paths.into_iter().filter(is_one).collect();
    paths.sort();
    Ok(paths)
}
