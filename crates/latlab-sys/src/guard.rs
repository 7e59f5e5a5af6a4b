//! The guard: every change of a machine is written to a journal first, read back, and restored.
//!
//! Each run that changes something keeps a journal in `/run/latlab`, which it locks while it lives.
//! The next latlab that finds an unlocked journal knows that its owner was killed or could not restore
//! everything, and restores the old values. A reboot empties `/run`, and resets the knobs as well.

mod entry;
mod error;
mod holder;
mod identity;
mod journal;
mod made;
mod recovery;
mod threads;

pub use error::GuardError;
pub use recovery::Recovery;
pub use threads::ThreadPolicy;

use crate::console;
use crate::knob::{KNOBS, Knob, KnobPlace, NoWrites, Unreadable};
use crate::lock::{FOLDER, LockFile};
use crate::root::Root;
use entry::Entry;
use journal::{Content, Journal, is_damage, journals, read};
use latlab_core::record::Change;
use latlab_core::suggest;
use made::Made;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Sets knobs, and restores them: when asked to, when it is dropped, or, if this process is killed,
/// when the next guard recovers its journal.
#[derive(Debug)]
pub struct Guard {
    root: Root,
    journal: Option<Journal>,
    /// The content that the journal should have.
    content: Content,
    changes: Vec<Made>,
    /// `/dev/cpu_dma_latency`, while it is held open.
    held: Option<File>,
    /// Entries of files and threads that another program has changed, which keep that value.
    left_alone: Vec<Entry>,
    /// Knobs that the journal still lists although they were restored, which does no harm.
    behind: Vec<String>,
    unrestored: Vec<Unrestored>,
    restored: Vec<Restored>,
}

/// Asserts for a fuzz target what holds for every journal that is accepted.
pub(crate) fn check_journal(bytes: &[u8]) {
    let root = Root::default();
    let Ok(content) = journal::parse(&root, bytes) else { return };
    let written = serde_json::to_vec(&content).expect("it is plain data");
    let again = journal::parse(&root, &written).expect("latlab reads what it writes");
    assert_eq!(again.entries, content.entries);
    let mut merged = content.entries.clone();
    if let Some(last) = content.entries.last() {
        entry::merge(&mut merged, last);
    }
    assert!(merged.iter().all(|one| content.entries.iter().any(|other| one.same_knob(other))));
}

/// A knob, or a thread, that could not be restored. It stays in the journal, for the next latlab.
/// Or the journal, if it still lists restored entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrestored {
    /// The name of the knob or thread, or the path of the journal.
    pub knob: String,
    /// The reason.
    pub why: String,
}

/// A knob, or a thread, that was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The name of the knob or thread.
    pub knob: String,
    /// The value that it has now.
    pub value: String,
}

/// A knob that does not have the value that was set: another program has changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The name of the knob.
    pub knob: String,
    /// The value that was set.
    pub set: String,
    /// The file in which it has another value.
    pub path: PathBuf,
    /// The value there.
    pub now: String,
}

impl Unrestored {
    /// A journal that lists restored entries, and can't be changed. `is_needed` if it also lists
    /// entries that were not restored.
    fn of_journal(path: &Path, error: &io::Error, is_needed: bool) -> Unrestored {
        let advice = if is_needed { "" } else { "; remove it before you change that" };
        Unrestored {
            knob: format!("the journal {}", path.display()),
            why: format!("{error}: the next latlab will restore what it lists once more{advice}"),
        }
    }
}

/// The knob and, in parentheses, the reason.
impl fmt::Display for Unrestored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.knob, self.why)
    }
}

impl Guard {
    /// A guard of the machine below `root`. Nothing is written until something is changed.
    pub fn new(root: Root) -> Guard {
        Guard {
            root,
            journal: None,
            content: Content { pid: std::process::id(), entries: Vec::new() },
            changes: Vec::new(),
            held: None,
            left_alone: Vec::new(),
            behind: Vec::new(),
            unrestored: Vec::new(),
            restored: Vec::new(),
        }
    }

    /// Restores what killed runs have left changed. Returns a sentence for each knob.
    pub fn recover(root: &Root) -> Vec<String> {
        Guard::recover_all(root).said
    }

    /// Restores as [`Guard::recover`] does, and also reports whether everything was restored.
    pub fn recover_all(root: &Root) -> Recovery {
        recovery::recover(root)
    }

    /// Sets a knob: journals it, writes it, and reads it back.
    pub fn set(&mut self, name: &str, value: &str, because: &str) -> Result<(), GuardError> {
        let knob = Knob::named(name).ok_or_else(|| {
            let names: Vec<&str> = KNOBS.iter().map(|knob| knob.name).collect();
            GuardError::Unknown(name.to_owned(), suggest::hint(name, &names))
        })?;
        let made = match knob.place {
            KnobPlace::Held => self.hold(knob, value)?,
            _ => self.write(knob, value)?,
        };
        self.note(made.because(because));
        Ok(())
    }

    /// Journals the value of a knob that a part of the run is about to change again and again:
    /// whatever value it has at the end, this one is restored.
    pub fn save(&mut self, name: &str, because: &str) -> Result<(), GuardError> {
        let knob = Knob::any_named(name)
            .ok_or_else(|| GuardError::Unknown(name.to_owned(), String::new()))?;
        let paths = knob.paths(&self.root).map_err(|why| unreadable(knob, why))?;
        let paths = paths.into_iter().map(|path| (path, None)).collect();
        let entries = self.journal_all(knob, paths).map_err(|error| match error {
            GuardError::NotAllowed(name) => GuardError::NotSaved(name),
            other => other,
        })?;
        self.changes.push(Made::of(&entries, "various").because(because));
        Ok(())
    }

    /// Restores one knob before the end.
    ///
    /// # Errors
    ///
    /// It does not have its old value: [`GuardError::Unrestored`], or [`GuardError::Changed`] where
    /// another program has changed it meanwhile; or the journal still lists it.
    pub fn restore_knob(&mut self, name: &str) -> Result<(), GuardError> {
        let restored = self.restore_those(|entry| entry.knob == name);
        self.behind.push(name.to_owned());
        let updated = self.update_journal();
        restored.and(updated)
    }

    /// Leaves a knob as it is, now and at the end: another program has changed it.
    pub fn leave_alone(&mut self, name: &str) -> Result<(), GuardError> {
        self.remove_those(name, |entry| entry.knob == name)
    }

    /// Brings the journal up to date, if it lists knobs that were restored.
    pub fn update_journal(&mut self) -> Result<(), GuardError> {
        if self.behind.is_empty() {
            return Ok(());
        }
        let knobs = self.behind.join(", ");
        let folder = self.root.path(FOLDER).display().to_string();
        self.rewrite().map_err(|error| GuardError::JournalOutdated { knobs, folder, error })
    }

    /// The knobs that do not have the values that were last set, each with one of its files. Knobs that
    /// a part of the run changes again and again, files that can't be read, and threads are left out.
    pub fn replaced(&self) -> Vec<Replaced> {
        let mut all: Vec<Replaced> = Vec::new();
        let entries = &self.content.entries;
        for (at, entry) in entries.iter().enumerate() {
            let is_last = !entries[at + 1..].iter().any(|newer| newer.same_knob(entry));
            let other = if is_last { entry.other_value() } else { None };
            if let Some((set, now)) = other
                && !all.iter().any(|known| known.knob == entry.knob)
            {
                let (knob, path) = (entry.knob.clone(), entry.path.clone());
                all.push(Replaced { knob, set, path, now });
            }
        }
        all
    }

    /// Restores everything, and returns the changes that were made. A knob that another program has
    /// changed meanwhile stays as it is.
    pub fn restore(&mut self) -> Vec<Change> {
        let outcome = entry::restore(&self.content.entries);
        self.left_alone.extend(outcome.left_alone.iter().cloned());
        let failed = outcome.failed.iter();
        let failed = failed.map(|(e, why)| Unrestored { knob: e.knob.clone(), why: why.clone() });
        self.unrestored = failed.collect();
        let restored = outcome.restored();
        self.restored =
            restored.map(|e| Restored { knob: e.knob.clone(), value: e.was.clone() }).collect();
        self.held = None;
        self.content.entries = outcome.remaining();
        if let Some(journal) = self.journal.take() {
            let path = journal.path().to_owned();
            let closed = journal.close(&self.content);
            let is_needed = !self.content.entries.is_empty();
            let unchanged = |error| Unrestored::of_journal(&path, &error, is_needed);
            self.unrestored.extend(closed.err().map(unchanged));
        }
        self.content.entries.clear();
        let left_alone = std::mem::take(&mut self.left_alone);
        let changes = std::mem::take(&mut self.changes).into_iter();
        changes.map(|made| made.ended(&left_alone, &outcome.failed)).collect()
    }

    /// Knobs and threads that the last [`Guard::restore`] could not restore.
    pub fn unrestored(&self) -> &[Unrestored] {
        &self.unrestored
    }

    /// Knobs and threads that the last [`Guard::restore`] has restored, except for those that had
    /// their old value already.
    pub fn restored(&self) -> &[Restored] {
        &self.restored
    }

    /// Restores the entries that match. An error where not all have their old values.
    fn restore_those(&mut self, matches: impl Fn(&Entry) -> bool) -> Result<(), GuardError> {
        let own: Vec<Entry> = self.content.entries.iter().filter(|e| matches(e)).cloned().collect();
        let outcome = entry::restore(&own);
        // What could not be restored stays in the journal, and is tried again at the end.
        self.content.entries.retain(|entry| !matches(entry));
        self.content.entries.extend(outcome.remaining());
        self.left_alone.retain(|entry| !matches(entry));
        self.left_alone.extend(outcome.left_alone.iter().cloned());
        outcome.check()
    }

    /// Removes the entries that match from the journal, as another program has changed them.
    fn remove_those(
        &mut self,
        name: &str,
        matches: impl Fn(&Entry) -> bool,
    ) -> Result<(), GuardError> {
        self.left_alone.extend(self.content.entries.extract_if(.., |entry| matches(entry)));
        self.behind.push(name.to_owned());
        self.update_journal()
    }

    /// Adds a change for the record. One that is made again and again is added once.
    fn note(&mut self, made: Made) {
        match self.changes.iter_mut().find(|known| known.is_like(&made)) {
            Some(known) => known.add_places(made),
            None => self.changes.push(made),
        }
    }

    fn hold(&mut self, knob: &Knob, value: &str) -> Result<Made, GuardError> {
        let refused =
            |why: String| GuardError::Refused(knob.name.to_owned(), value.to_owned(), why);
        let number: i32 = value.parse().map_err(|_| not_a_number(knob, value))?;
        let was = self.root.signed("dev/cpu_dma_latency");
        let path = self.root.path("dev/cpu_dma_latency");
        let opened = OpenOptions::new().write(true).open(&path);
        let mut file = opened.map_err(|e| match (e.kind(), e.raw_os_error()) {
            (io::ErrorKind::PermissionDenied, _) => GuardError::NotAllowed(knob.name.to_owned()),
            (io::ErrorKind::NotFound, _) | (_, Some(libc::ENODEV | libc::ENXIO)) => missing(knob),
            _ => refused(format!("opening {}: {e}", path.display())),
        })?;
        file.write_all(&number.to_ne_bytes()).map_err(|e| refused(e.to_string()))?;
        self.held = Some(file);
        let was = was.map_or_else(|| "unknown".to_owned(), |us| us.to_string());
        Ok(Made::held(knob.name, &was, value))
    }

    fn write(&mut self, knob: &'static Knob, value: &str) -> Result<Made, GuardError> {
        let writes = knob.writes(&self.root, value).map_err(|why| match why {
            NoWrites::NotANumber => not_a_number(knob, value),
            NoWrites::Unreadable(why) => unreadable(knob, why),
        })?;
        let writes = writes.into_iter().map(|(path, set)| (path, Some(set))).collect();
        let entries = self.journal_all(knob, writes)?;
        for entry in &entries {
            entry.apply(entry.set.as_deref().unwrap_or(value))?;
        }
        Ok(Made::of(&entries, value))
    }

    /// Journals the old and the new value of a knob in each of these files.
    fn journal_all(
        &mut self,
        knob: &'static Knob,
        files: Vec<(PathBuf, Option<String>)>,
    ) -> Result<Vec<Entry>, GuardError> {
        if files.is_empty() {
            return Err(missing(knob));
        }
        let _lock = self.lock_journals(knob.name)?;
        refuse_if_taken(&self.others(knob.name)?, |theirs| theirs.knob == knob.name, knob.name)?;
        let entries: Vec<Entry> = files
            .into_iter()
            .map(|(path, set)| Entry::of_file(knob, path, set))
            .collect::<Result<_, GuardError>>()?;
        self.add_to_journal(&entries)?;
        Ok(entries)
    }

    /// The journals of other runs. Damaged journals, and journals that are just being removed,
    /// count as empty.
    fn others(&self, name: &str) -> Result<Vec<Content>, GuardError> {
        let own = self.journal.as_ref().map(Journal::path);
        let read_all = || -> io::Result<Vec<Content>> {
            let journals = journals(&self.root)?;
            let others = journals.iter().filter(|path| Some(path.as_path()) != own);
            let gone = |e: &io::Error| is_damage(e) || e.kind() == io::ErrorKind::NotFound;
            let read = |path: &PathBuf| match read(&self.root, path) {
                Err(error) if gone(&error) => Ok(Content::default()),
                content => content,
            };
            others.map(read).collect()
        };
        read_all().map_err(|e| no_journal(name, &self.root.path(FOLDER), e))
    }

    /// Locks all journals: no other run may look whether a knob is taken until this one has
    /// journalled that it is.
    fn lock_journals(&self, name: &str) -> Result<LockFile, GuardError> {
        LockFile::of_journals(&self.root).map_err(|e| no_journal(name, &self.root.path(FOLDER), e))
    }

    /// Adds entries to the journal. They are on disk when this returns.
    fn add_to_journal(&mut self, entries: &[Entry]) -> Result<(), GuardError> {
        let Some(Entry { knob, .. }) = entries.first() else { return Ok(()) };
        let folder = self.root.path(FOLDER);
        if self.journal.is_none() {
            let begun = Journal::begin(&folder);
            self.journal = Some(begun.map_err(|e| no_journal(knob, &folder, e))?);
        }
        for entry in entries {
            entry::merge(&mut self.content.entries, entry);
            self.content.entries.push(entry.clone());
        }
        self.rewrite().map_err(|e| no_journal(knob, &folder, e))
    }

    fn rewrite(&mut self) -> io::Result<()> {
        self.behind.clear();
        let Some(journal) = self.journal.as_mut() else { return Ok(()) };
        journal.write(&self.content)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Fails where another run has set the knob: the two would restore each other's values.
fn refuse_if_taken(
    others: &[Content],
    theirs: impl Fn(&Entry) -> bool,
    name: &str,
) -> Result<(), GuardError> {
    match others.iter().find(|other| other.entries.iter().any(&theirs)) {
        Some(Content { pid, .. }) => Err(GuardError::Taken { knob: name.to_owned(), pid: *pid }),
        None => Ok(()),
    }
}

fn no_journal(knob: &str, folder: &Path, error: io::Error) -> GuardError {
    match error.kind() {
        // A user who may not write there may not set knobs either.
        io::ErrorKind::PermissionDenied => GuardError::NotAllowed(knob.to_owned()),
        _ => GuardError::Journal(folder.display().to_string(), error),
    }
}

fn not_a_number(knob: &Knob, value: &str) -> GuardError {
    GuardError::NotANumber(knob.name.to_owned(), value.to_owned())
}

fn unreadable(knob: &Knob, why: Unreadable) -> GuardError {
    GuardError::of_unreadable(knob.name, why)
}

fn missing(knob: &Knob) -> GuardError {
    let what = match knob.place {
        KnobPlace::Files(pattern) | KnobPlace::OnlineCpus(pattern) => format!("/{pattern}"),
        KnobPlace::Held => "/dev/cpu_dma_latency".to_owned(),
        KnobPlace::IdleStates => "an idle state slower than that".to_owned(),
        KnobPlace::Console(_) => console::PATH.to_owned(),
        KnobPlace::Feature(_) => "/sys/kernel/debug/sched/features".to_owned(),
    };
    GuardError::Missing(knob.name.to_owned(), what)
}

#[cfg(test)]
mod tests;
