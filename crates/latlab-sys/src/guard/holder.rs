//! The owner of a locked journal, and the knobs and threads that it has changed.

use super::journal::{is_damage, parse};
use crate::procfs::Life;
use crate::root::Root;
use std::collections::BTreeSet;
use std::path::Path;
use std::{fmt, fs, io};

/// The owner of a locked journal.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) process: u32,
    pub(super) life: Life,
    /// The names of the changed knobs and threads; never empty.
    knobs: BTreeSet<String>,
}

impl Holder {
    /// The owner of this journal. None where it has changed nothing, or has just removed it.
    pub(super) fn of(root: &Root, path: &Path) -> io::Result<Option<Holder>> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        // It is written before anything is changed.
        if bytes.is_empty() {
            return Ok(None);
        }
        // Its owner lives. It may be of another version, or be writing it now.
        let content = match parse(root, &bytes) {
            Err(error) if is_damage(&error) => return Ok(None),
            content => content?,
        };
        let knobs: BTreeSet<String> = content.entries.into_iter().map(|entry| entry.knob).collect();
        if knobs.is_empty() {
            return Ok(None);
        }
        // A number that no process can have.
        let life = i32::try_from(content.pid).map_or(Ok(Life::Gone), Life::of)?;
        Ok(Some(Holder { process: content.pid, life, knobs }))
    }
}

/// A sentence with the reason why its changes are not restored.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holder { process, life, knobs } = self;
        let knobs = knobs.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        match life {
            Life::Runs => {
                write!(f, "latlab {process} still holds {knobs}: it runs, and restores that itself")
            }
            Life::Stopped => write!(
                f,
                "latlab {process} still holds {knobs}, which can't be restored yet: it is stopped; \
                 continue it (kill -CONT {process}) or end it"
            ),
            Life::Ending => write!(
                f,
                "latlab {process} still holds {knobs}, which can't be restored yet: it was killed, \
                 but has not ended wholly; the next latlab tries again"
            ),
            Life::Gone => write!(
                f,
                "another process still has the journal of latlab {process}, so that {knobs} can't be \
                 restored yet; the next latlab tries again"
            ),
        }
    }
}
