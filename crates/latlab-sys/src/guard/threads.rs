//! Scheduling policies of threads, which the guard sets and restores like knobs.

use super::entry::Entry;
use super::made::Made;
use super::{Guard, GuardError};

/// A policy for a thread.
#[derive(Clone, Debug)]
pub struct ThreadPolicy<'a> {
    /// Its thread id.
    pub thread: i32,
    /// Its name: a thread of another name reuses the id.
    pub name: &'a str,
    /// The policy, as `fifo 50` or `other`.
    pub policy: &'a str,
    /// The reason, for the record.
    pub because: String,
}

impl Guard {
    /// Sets the policies of threads. All are journalled at once, since writing the journal takes
    /// most of the time; then each is set and read back. Returns the result of each, in order. An
    /// error of the whole means that no thread was changed.
    pub fn set_threads(
        &mut self,
        all: &[ThreadPolicy<'_>],
    ) -> Result<Vec<Result<(), GuardError>>, GuardError> {
        let Some(first) = all.first() else { return Ok(Vec::new()) };
        let _lock = self.lock_journals(first.name)?;
        let others = self.others(first.name)?;
        let entry = |one: &ThreadPolicy<'_>| {
            let entry = Entry::of_thread(one.thread, one.name, one.policy.to_owned())?;
            super::refuse_if_taken(&others, |theirs| theirs.same_knob(&entry), one.name)?;
            Ok(entry)
        };
        let entries: Vec<Result<Entry, GuardError>> = all.iter().map(entry).collect();
        let valid: Vec<Entry> = entries.iter().flatten().cloned().collect();
        self.add_to_journal(&valid)?;
        let results = entries.into_iter().zip(all).map(|(entry, one)| self.apply(&entry?, one));
        Ok(results.collect())
    }

    fn apply(&mut self, entry: &Entry, one: &ThreadPolicy<'_>) -> Result<(), GuardError> {
        entry.apply(one.policy)?;
        let made = Made::of(std::slice::from_ref(entry), one.policy);
        self.note(made.because(&one.because));
        Ok(())
    }

    /// Restores the policy of a thread before the end, as [`Guard::restore_knob`] does for a knob.
    /// For a thread that has ended there is nothing to restore. The journal is brought up to date
    /// only when it is written next, or by [`Guard::update_journal`]: there may be many threads,
    /// and writing it takes longer than restoring them.
    pub fn restore_thread(&mut self, thread: i32, name: &str) -> Result<(), GuardError> {
        self.behind.push(name.to_owned());
        self.restore_those(|entry| entry.is_of(thread, name))
    }

    /// Leaves the policy of a thread as it is, as [`Guard::leave_alone`] does for a knob.
    pub fn leave_thread_alone(&mut self, thread: i32, name: &str) -> Result<(), GuardError> {
        self.remove_those(name, |entry| entry.is_of(thread, name))
    }
}
