//! Restoring what runs have left changed that were killed.

use super::entry::{self, Entry, Outcome};
use super::journal::{self, Content, Journal, journals, read};
use crate::claim;
use crate::lock::{self, FOLDER};
use crate::root::Root;
use std::fs;
use std::path::Path;

/// The result of [`super::Guard::recover_all`].
#[derive(Debug)]
pub struct Recovery {
    /// A sentence for each knob.
    pub said: Vec<String>,
    /// Whether everything was restored and every journal could be read.
    pub complete: bool,
}

/// Restores what all killed runs have left changed below `root`, and removes their other files.
pub(super) fn recover(root: &Root) -> Recovery {
    claim::sweep(root);
    lock::sweep(&root.path(FOLDER).join("turn"));
    journal::sweep(root);
    let mut all = Recovery { said: Vec::new(), complete: true };
    for path in journals(root) {
        recover_one(&path, &mut all);
    }
    all
}

fn recover_one(path: &Path, all: &mut Recovery) {
    let Some(journal) = Journal::abandoned(path) else { return };
    let Some(content) = read(path) else {
        let said = set_aside(path);
        all.complete &= said.is_none();
        all.said.extend(said);
        return;
    };
    let outcome = entry::restore(&content.entries);
    // A knob that was set several times is reported once, with its first value.
    let each = content.entries.iter().enumerate();
    let first = each.filter(|(at, one)| !content.entries[..*at].iter().any(|e| e.same_knob(one)));
    all.said.extend(first.map(|(_, entry)| report(content.pid, entry, &outcome)));
    all.complete &= outcome.failed.is_empty();
    journal.close(&Content { pid: content.pid, entries: outcome.remaining() });
}

/// Keeps a journal that can't be read, under another name, and says so. An empty one is removed:
/// nothing was changed.
fn set_aside(path: &Path) -> Option<String> {
    if fs::metadata(path).is_ok_and(|data| data.len() == 0) {
        let _ = fs::remove_file(path);
        return None;
    }
    let aside = path.with_extension("damaged");
    let _ = fs::rename(path, &aside);
    Some(format!(
        "latlab was killed and its journal is damaged: see {} for the changes that it lists",
        aside.display()
    ))
}

fn report(pid: u32, entry: &Entry, outcome: &Outcome) -> String {
    let Entry { knob, path, was, set, .. } = entry;
    let path = path.display();
    let left_alone = outcome.left_alone.contains(knob);
    if let Some((_, why)) = outcome.failed.iter().find(|(failed, _)| failed.same_knob(entry)) {
        return format!(
            "latlab {pid} was killed; {knob} ({path}) was {was} and can't be restored yet: {why}; \
             the next latlab tries again"
        );
    }
    match set {
        Some(set) if left_alone => format!(
            "latlab {pid} was killed after it set {knob} ({path}) to {set}; somebody has changed \
             it since, so it stays"
        ),
        Some(set) => {
            format!("latlab {pid} was killed; {knob} ({path}) is {was} again, no longer {set}")
        }
        None if left_alone => {
            format!("latlab {pid} was killed; {knob} ({path}) was {was}, and can't be restored")
        }
        None => format!("latlab {pid} was killed; {knob} ({path}) is {was} again"),
    }
}
