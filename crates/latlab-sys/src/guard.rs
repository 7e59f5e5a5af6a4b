//! The guard: whatever is changed on a machine is written down first, read back, and given back.
//!
//! Each run that changes something keeps a journal in `/run/latlab`, locked while it lives. The
//! next latlab that finds an unlocked journal knows that its owner died, and puts the old values
//! back. `/run` is emptied by a reboot, and so are the knobs.

mod entry;
mod journal;
mod threads;

pub use threads::Wanted;

use crate::claim;
use crate::console;
use crate::knob::{KNOBS, Knob, Place};
use crate::lock::{self, FOLDER, Turn};
use crate::root::Root;
use entry::{Entry, GivenBack};
use journal::{Entries, Journal, journals, read};
use latlab_core::record::Change;
use latlab_core::suggest;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Why a knob could not be turned.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// There is no such knob.
    #[error("there is no knob '{0}': {1}")]
    Unknown(String, String),
    /// The value can't be one of this knob's.
    #[error("{0}={1} was refused by the kernel: {2}")]
    Refused(String, String, String),
    /// The value is none that could be tried.
    #[error("{0}={1} can't be: it takes a whole number of microseconds")]
    NotANumber(String, String),
    /// This machine has no such knob.
    #[error("this machine has no {0}: {1} is missing")]
    Missing(String, String),
    /// The caller may not turn it.
    #[error("changing {0} needs root: run latlab as root, or leave --set {0} out")]
    NotAllowed(String),
    /// The caller may not read it, or not write down how it stands.
    #[error("{0} can't be given back as it is: run latlab as root, or leave the load out")]
    NotKept(String),
    /// Another run has turned it, and lives or could not give it back.
    #[error(
        "{knob} is held by another latlab (process {pid}): wait until that has ended, or do \
         `latlab adapt --restore` where it was killed"
    )]
    Taken {
        /// The knob.
        knob: String,
        /// Who holds it.
        pid: u32,
    },
    /// The thread whose policy is the knob has ended.
    #[error("{0} has ended")]
    Ended(String),
    /// Nothing is changed that could not be written down first.
    #[error("the journal in {0} can't be written, so nothing was changed: {1}")]
    Journal(String, io::Error),
    /// What was given back or left alone could not be taken out of the journal.
    #[error(
        "the journal in {folder} can't be written ({error}), and still has {knobs} as turned, \
         which does no harm"
    )]
    Behind {
        /// The knobs, with commas.
        knobs: String,
        /// Where the journal is.
        folder: String,
        /// Why not.
        error: io::Error,
    },
}

/// What [`Guard::mend_all`] has come to.
#[derive(Debug)]
pub struct Mended {
    /// A sentence for each knob.
    pub said: Vec<String>,
    /// Whether everything could be put back, and every journal be read.
    pub complete: bool,
}

/// Turns knobs, and turns them back: when asked, when dropped, or, should this process be
/// killed, when the next guard comes.
#[derive(Debug)]
pub struct Guard {
    root: Root,
    journal: Option<Journal>,
    written: Entries,
    changes: Vec<Change>,
    held: Option<File>,
    /// Knobs that stay as somebody else has turned them.
    left: Vec<String>,
    /// What the journal still names though it was given back already, which does no harm.
    behind: Vec<String>,
}

impl Guard {
    /// A guard of the machine under `root`. Nothing is written until something is changed.
    pub fn new(root: Root) -> Guard {
        let written = Entries { pid: std::process::id(), entries: Vec::new() };
        Guard {
            root,
            journal: None,
            written,
            changes: Vec::new(),
            held: None,
            left: Vec::new(),
            behind: Vec::new(),
        }
    }

    /// Puts back what runs that were killed have left changed, and says so, a sentence each.
    pub fn mend(root: &Root) -> Vec<String> {
        Guard::mend_all(root).said
    }

    /// The same; says as well whether nothing is left to mend.
    pub fn mend_all(root: &Root) -> Mended {
        claim::sweep(root);
        lock::sweep(&root.path(FOLDER).join("turn"));
        journal::sweep(root);
        let mut all = Mended { said: Vec::new(), complete: true };
        for path in journals(root) {
            mend_one(&path, &mut all);
        }
        all
    }

    /// Turns a knob: journalled, written, read back.
    pub fn set(&mut self, name: &str, value: &str, because: &str) -> Result<(), GuardError> {
        let knob = Knob::named(name).ok_or_else(|| {
            let names: Vec<&str> = KNOBS.iter().map(|knob| knob.name).collect();
            GuardError::Unknown(name.to_owned(), suggest::hint(name, &names))
        })?;
        let change = match knob.place {
            Place::Held => self.hold(knob, value)?,
            _ => self.write(knob, value)?,
        };
        self.note(Change { reason: because.to_owned(), ..change });
        Ok(())
    }

    /// Turns one knob back before the end. Whether it is as it was: a knob that somebody else has
    /// turned meanwhile stays as it is.
    pub fn release(&mut self, name: &str) -> Result<bool, GuardError> {
        let back = self.release_those(name, |entry| entry.knob == name);
        self.behind.push(name.to_owned());
        self.settle()?;
        Ok(back)
    }

    /// Has the journal say what is turned now, where it is behind.
    pub fn settle(&mut self) -> Result<(), GuardError> {
        if self.behind.is_empty() {
            return Ok(());
        }
        let knobs = self.behind.join(", ");
        let folder = self.root.path(FOLDER).display().to_string();
        self.rewrite().map_err(|error| GuardError::Behind { knobs, folder, error })
    }

    /// Leaves a knob as it is, from now on and at the end: somebody else has turned it.
    pub fn forget(&mut self, name: &str) -> Result<(), GuardError> {
        self.left.push(name.to_owned());
        self.forget_those(name, |entry| entry.knob == name)
    }

    fn release_those(&mut self, name: &str, theirs: impl Fn(&Entry) -> bool) -> bool {
        let own: Vec<Entry> = self.written.entries.iter().filter(|e| theirs(e)).cloned().collect();
        let given = entry::give_back(&own);
        let still = given.still();
        // What could not be put back stays in the journal: at the end it is tried again.
        self.written.entries.retain(|entry| !theirs(entry) || still.contains(entry));
        self.left.retain(|knob| knob != name);
        self.left.extend(given.left);
        still.is_empty() && !self.left.iter().any(|knob| knob == name)
    }

    fn forget_those(
        &mut self,
        name: &str,
        theirs: impl Fn(&Entry) -> bool,
    ) -> Result<(), GuardError> {
        self.written.entries.retain(|entry| !theirs(entry));
        self.behind.push(name.to_owned());
        self.settle()
    }

    /// Writes down how a knob stands that a part of the run is about to change again and again:
    /// whatever it is at the end, it is turned back to that.
    pub fn keep(&mut self, name: &str, because: &str) -> Result<(), GuardError> {
        let knob =
            Knob::kept(name).ok_or_else(|| GuardError::Unknown(name.to_owned(), String::new()))?;
        let paths = knob.paths(&self.root).into_iter().map(|path| (path, None)).collect();
        let entries = self.write_all_down(knob, paths).map_err(|error| match error {
            GuardError::NotAllowed(name) => GuardError::NotKept(name),
            other => other,
        })?;
        let change = change(knob.name, &summary(&entries), "various");
        self.changes.push(Change { reason: because.to_owned(), ..change });
        Ok(())
    }

    /// Gives everything back and says what was changed. A knob that somebody else has turned
    /// meanwhile stays as it is.
    pub fn restore(&mut self) -> Vec<Change> {
        let given = entry::give_back(&self.written.entries);
        self.left.extend(given.left.iter().cloned());
        self.left.extend(given.owed.iter().map(|(entry, _)| entry.knob.clone()));
        self.held = None;
        self.written.entries = given.still();
        if let Some(journal) = self.journal.take() {
            leave(journal, &self.written);
        }
        self.written.entries.clear();
        for change in &mut self.changes {
            change.restored = !self.left.contains(&change.knob);
        }
        self.left.clear();
        std::mem::take(&mut self.changes)
    }

    /// Keeps a change for the record. One that is made again and again is kept once.
    fn note(&mut self, change: Change) {
        let same = |known: &Change| {
            (&known.knob, &known.old, &known.new) == (&change.knob, &change.old, &change.new)
        };
        if !self.changes.iter().any(same) {
            self.changes.push(change);
        }
    }

    fn hold(&mut self, knob: &Knob, value: &str) -> Result<Change, GuardError> {
        let refused =
            |why: String| GuardError::Refused(knob.name.to_owned(), value.to_owned(), why);
        let number: i32 = value.parse().map_err(|_| not_a_number(knob, value))?;
        let path = self.root.path("dev/cpu_dma_latency");
        let was = fs::read(&path)
            .ok()
            .and_then(|bytes| Some(i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)));
        let mut file = OpenOptions::new().write(true).open(&path).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => GuardError::NotAllowed(knob.name.to_owned()),
            _ => GuardError::Missing(knob.name.to_owned(), path.display().to_string()),
        })?;
        file.write_all(&number.to_ne_bytes()).map_err(|e| refused(e.to_string()))?;
        self.held = Some(file);
        let was = was.map_or_else(|| "unknown".to_owned(), |us| us.to_string());
        Ok(change(knob.name, &was, value))
    }

    fn write(&mut self, knob: &'static Knob, value: &str) -> Result<Change, GuardError> {
        let writes = knob.writes(&self.root, value).map_err(|_| not_a_number(knob, value))?;
        let writes = writes.into_iter().map(|(path, set)| (path, Some(set))).collect();
        let entries = self.write_all_down(knob, writes)?;
        for entry in &entries {
            entry.turn(entry.set.as_deref().unwrap_or(value))?;
        }
        Ok(change(knob.name, &summary(&entries), value))
    }

    /// Adds what a knob has at these places, and what it will have, to the journal.
    fn write_all_down(
        &mut self,
        knob: &'static Knob,
        places: Vec<(PathBuf, Option<String>)>,
    ) -> Result<Vec<Entry>, GuardError> {
        if places.is_empty() {
            return Err(missing(knob));
        }
        let _turn = self.take_turn(knob.name)?;
        refuse_if_taken(&self.others(), |theirs| theirs.knob == knob.name, knob.name)?;
        let entries: Vec<Entry> = places
            .into_iter()
            .map(|(path, set)| Entry::of_file(knob, path, set))
            .collect::<Result<_, GuardError>>()?;
        self.write_down(&entries)?;
        Ok(entries)
    }

    /// What other runs have turned.
    fn others(&self) -> Vec<Entries> {
        let own = self.journal.as_ref().map(Journal::path);
        let journals = journals(&self.root);
        let others = journals.iter().filter(|path| Some(path.as_path()) != own);
        others.filter_map(|path| read(path)).collect()
    }

    /// Between looking whether a knob is taken and writing down that it is, nobody else may look.
    fn take_turn(&self, name: &str) -> Result<Turn, GuardError> {
        Turn::take(&self.root).map_err(|e| no_journal(name, &self.root.path(FOLDER), e))
    }

    /// Adds entries to the journal and has them on disk before it returns.
    fn write_down(&mut self, entries: &[Entry]) -> Result<(), GuardError> {
        let Some(Entry { knob, .. }) = entries.first() else { return Ok(()) };
        let folder = self.root.path(FOLDER);
        if self.journal.is_none() {
            let begun = Journal::begin(&folder);
            self.journal = Some(begun.map_err(|e| no_journal(knob, &folder, e))?);
        }
        for entry in entries {
            entry::join(&mut self.written.entries, entry);
            self.written.entries.push(entry.clone());
        }
        self.rewrite().map_err(|e| no_journal(knob, &folder, e))
    }

    /// Has the journal say what is turned now.
    fn rewrite(&mut self) -> io::Result<()> {
        self.behind.clear();
        let Some(journal) = self.journal.as_mut() else { return Ok(()) };
        journal.write(&self.written)
    }
}

/// Two runs that turn one knob would give back each other's values.
fn refuse_if_taken(
    others: &[Entries],
    theirs: impl Fn(&Entry) -> bool,
    name: &str,
) -> Result<(), GuardError> {
    match others.iter().find(|other| other.entries.iter().any(&theirs)) {
        Some(Entries { pid, .. }) => Err(GuardError::Taken { knob: name.to_owned(), pid: *pid }),
        None => Ok(()),
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.restore();
    }
}

fn change(knob: &str, was: &str, set: &str) -> Change {
    Change {
        knob: knob.to_owned(),
        old: was.to_owned(),
        new: set.to_owned(),
        reason: String::new(),
        restored: false,
    }
}

fn no_journal(knob: &str, folder: &Path, error: io::Error) -> GuardError {
    match error.kind() {
        // Who may not write there may not turn knobs either.
        io::ErrorKind::PermissionDenied => GuardError::NotAllowed(knob.to_owned()),
        _ => GuardError::Journal(folder.display().to_string(), error),
    }
}

fn not_a_number(knob: &Knob, value: &str) -> GuardError {
    GuardError::NotANumber(knob.name.to_owned(), value.to_owned())
}

fn missing(knob: &'static Knob) -> GuardError {
    let what = match knob.place {
        Place::Files(pattern) => format!("/{pattern}"),
        Place::Held => "/dev/cpu_dma_latency".to_owned(),
        Place::IdleStates => "an idle state slower than that".to_owned(),
        Place::Console(_) => console::PATH.to_owned(),
        Place::Feature(_) => "/sys/kernel/debug/sched/features".to_owned(),
    };
    GuardError::Missing(knob.name.to_owned(), what)
}

/// One value where all files had the same, else each, in order.
fn summary(entries: &[Entry]) -> String {
    let values: Vec<&str> = entries.iter().map(|entry| entry.was.as_str()).collect();
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        values.first().copied().unwrap_or_default().to_owned()
    } else {
        values.join(" ")
    }
}

fn mend_one(path: &Path, all: &mut Mended) {
    let Some(journal) = Journal::left(path) else { return };
    let Some(found) = read(path) else {
        let said = set_aside(path);
        all.complete &= said.is_empty();
        all.said.extend(said);
        return;
    };
    let given = entry::give_back(&found.entries);
    // What was changed more than once is told once, by what it was at first.
    let each = found.entries.iter().enumerate();
    let first = each.filter(|(at, one)| !found.entries[..*at].iter().any(|e| e.same_knob(one)));
    all.said.extend(first.map(|(_, entry)| tell(found.pid, entry, &given)));
    all.complete &= given.owed.is_empty();
    leave(journal, &Entries { pid: found.pid, entries: given.still() });
}

/// Leaves what is still to be given back to the next latlab.
fn leave(mut journal: Journal, still: &Entries) {
    if still.entries.is_empty() {
        journal.end();
    } else {
        // Where it can't be written anew, it says more than is needed, which is no harm.
        let _ = journal.write(still);
    }
}

/// A journal that can't be read is kept for people. An empty one says that nothing was changed.
fn set_aside(path: &Path) -> Vec<String> {
    if fs::metadata(path).is_ok_and(|there| there.len() == 0) {
        let _ = fs::remove_file(path);
        return Vec::new();
    }
    let aside = path.with_extension("damaged");
    let _ = fs::rename(path, &aside);
    vec![format!(
        "a latlab was killed and its journal is damaged: see in {} what it had changed",
        aside.display()
    )]
}

fn tell(pid: u32, entry: &Entry, given: &GivenBack) -> String {
    let Entry { knob, path, was, set, .. } = entry;
    let path = path.display();
    let left = &given.left;
    if let Some((_, why)) = given.owed.iter().find(|(owed, _)| owed.same_knob(entry)) {
        return format!(
            "latlab {pid} was killed; {knob} ({path}) was {was} and can't be turned back yet: {why}; \
             the next latlab tries again"
        );
    }
    match set {
        Some(set) if left.contains(knob) => format!(
            "latlab {pid} was killed after it set {knob} ({path}) to {set}; somebody has changed it since, so it stays"
        ),
        Some(set) => {
            format!("latlab {pid} was killed; {knob} ({path}) is {was} again, no longer {set}")
        }
        None if left.contains(knob) => {
            format!("latlab {pid} was killed; {knob} ({path}) was {was}, and can't be turned back")
        }
        None => format!("latlab {pid} was killed; {knob} ({path}) is {was} again"),
    }
}

#[cfg(test)]
mod tests;
