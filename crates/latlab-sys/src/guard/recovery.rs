//! Restoring what runs have left changed that were killed, or could not restore it.

use super::Unrestored;
use super::entry::{self, Entry, Outcome};
use super::holder::Holder;
use super::journal::{self, Content, Journal, TakeOver};
use super::journal::{damaged, is_damage, journals, read, set_aside};
use crate::lock::{self, FOLDER};
use crate::process::{self, Patience};
use crate::procfs::Life;
use crate::root::Root;
use crate::{claim, clock};
use latlab_core::time::Nanos;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

/// How long a process may take to end, or another latlab to restore a journal, before it is reported.
const PATIENCE: Nanos = Nanos::from_secs(3);
const STEP: Nanos = Nanos::from_millis(10);

/// The result of [`super::Guard::recover_all`].
#[derive(Debug)]
pub struct Recovery {
    /// A sentence for each knob.
    pub said: Vec<String>,
    /// Whether everything was restored and every journal could be read.
    pub complete: bool,
    /// A sentence for each latlab that runs and has changed knobs, which it restores itself.
    pub held: Vec<String>,
}

/// Restores what ended runs have left changed below `root`, and removes their other files.
pub(super) fn recover(root: &Root) -> Recovery {
    claim::sweep(root);
    lock::sweep(&root.path(FOLDER).join("turn"));
    journal::sweep(root);
    let mut all = Recovery { said: Vec::new(), complete: true, held: Vec::new() };
    let done = journals(root).map(|paths| {
        for path in paths {
            if let Err(error) = recover_one(root, &path, &mut all) {
                all.failed(&path, &error);
            }
        }
    });
    if let Err(error) = done.and_then(|()| all.report_damaged(root)) {
        all.failed(&root.path(FOLDER), &error);
    }
    all
}

fn recover_one(root: &Root, path: &Path, all: &mut Recovery) -> io::Result<()> {
    let Some(journal) = take_over(root, path, all)? else { return Ok(()) };
    if fs::metadata(path)?.len() == 0 {
        // Nothing was changed yet.
        return journal.remove();
    }
    let content = match read(root, path) {
        Err(error) if is_damage(&error) => return set_aside(path),
        content => content?,
    };
    let outcome = entry::restore(&content.entries);
    // A knob that was set several times is reported once, with its first old value.
    let each = content.entries.iter().enumerate();
    let first = each.filter(|(at, one)| !content.entries[..*at].iter().any(|e| e.same_knob(one)));
    all.said.extend(first.map(|(_, entry)| report(content.pid, entry, &outcome)));
    all.complete &= outcome.failed.is_empty();
    let remaining = Content { pid: content.pid, entries: outcome.remaining() };
    if let Err(error) = journal.close(&remaining) {
        all.complete = false;
        let is_needed = !remaining.entries.is_empty();
        let Unrestored { knob, why } = Unrestored::of_journal(path, &error, is_needed);
        all.said.push(format!("{knob} can't be brought up to date: {why}"));
    }
    Ok(())
}

/// Takes over a journal. Waits for a while where its owner has not ended wholly, or another latlab
/// restores it: a process that is killed has its files open and locked for a while. None where nothing
/// is left to restore, or it is still in use then.
fn take_over(root: &Root, path: &Path, all: &mut Recovery) -> io::Result<Option<Journal>> {
    let mut limit = None;
    loop {
        match Journal::take_over(path)? {
            TakeOver::Done(journal) => return Ok(Some(journal)),
            TakeOver::Gone => return Ok(None),
            TakeOver::InUse => {}
        }
        let Some(holder) = Holder::of(root, path)? else { return Ok(None) };
        let is_settled = matches!(holder.life, Life::Runs | Life::Stopped);
        let limit = limit.get_or_insert_with(|| Patience::with(holder.process, PATIENCE));
        let is_over = limit.is_over();
        if is_over {
            await_no_more(path);
        }
        if is_settled || is_over || was_awaited(path) {
            all.add(&holder);
            return Ok(None);
        }
        clock::sleep_for(STEP);
    }
}

/// The journals for which this process waited in vain: each of its runs looks for left journals,
/// and would wait again.
static AWAITED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn was_awaited(path: &Path) -> bool {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
}

fn await_no_more(path: &Path) {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
}

impl Recovery {
    /// A journal is in use. A run that goes on restores its knobs itself.
    fn add(&mut self, holder: &Holder) {
        if holder.life == Life::Runs {
            self.held.push(holder.to_string());
        } else {
            self.complete = false;
            self.said.push(holder.to_string());
        }
    }

    /// A journal or the journals' folder can't be read. Journals of root are no business of other
    /// users.
    fn failed(&mut self, path: &Path, error: &io::Error) {
        if error.kind() == io::ErrorKind::PermissionDenied && !process::is_root() {
            return;
        }
        self.complete = false;
        self.said.push(format!(
            "latlab may have been killed, and what it has changed can't be restored yet: {}: {error}; \
             the next latlab tries again",
            path.display()
        ));
    }

    fn report_damaged(&mut self, root: &Root) -> io::Result<()> {
        for path in damaged(root)? {
            self.complete = false;
            self.said.push(format!(
                "a journal of changes is damaged: undo those that {} lists, and remove it",
                path.display()
            ));
        }
        Ok(())
    }
}

/// What became of a change that a run has left: it was killed, or could not restore it.
fn report(pid: u32, entry: &Entry, outcome: &Outcome) -> String {
    let Entry { knob, path, was, set, .. } = entry;
    let left = format!("latlab {pid} did not restore {knob} ({})", path.display());
    let left_alone = outcome.leaves_alone(entry);
    if let Some((_, why)) = outcome.failed.iter().find(|(failed, _)| failed.same_knob(entry)) {
        return format!(
            "{left}; it was {was} and can't be restored yet: {why}; the next latlab tries again"
        );
    }
    if outcome.has_ended(entry) {
        return format!("{left}; it has ended since, so there is nothing to restore");
    }
    let found = outcome.found(entry).filter(|found| found != was);
    match (set, found) {
        (Some(_), Some(found)) if left_alone => format!(
            "{left}; somebody has changed it to {found} since, or the kernel took another value than \
             was set, so it stays; it was {was}"
        ),
        _ if left_alone => format!("{left}; it was {was}, and can't be restored"),
        (Some(_), Some(found)) => format!("{left}; it is {was} again, no longer {found}"),
        _ => format!("{left}; it is {was} again"),
    }
}
