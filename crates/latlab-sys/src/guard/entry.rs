//! One change in a journal: how it is made and undone.

use super::GuardError;
use crate::knob::{self, Knob};
use crate::{procfs, sched};
use latlab_core::mechanism::Policy;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// A file or a thread that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) knob: String,
    pub(super) path: PathBuf,
    pub(super) was: String,
    /// None where it is changed again and again, so that any value may be this run's.
    pub(super) set: Option<String>,
    /// The thread whose policy was changed; None for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<ThreadIdentity>,
}

/// The identity of a thread. Its id may be reused, and programs may give their threads any
/// name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadIdentity {
    id: i32,
    /// The time at which it was started, in clock ticks since boot.
    started: u64,
}

impl Entry {
    /// A file, with its present value and the value to be set.
    pub(super) fn of_file(
        knob: &Knob,
        path: PathBuf,
        set: Option<String>,
    ) -> Result<Entry, GuardError> {
        let name = knob.name.to_owned();
        match knob::read(knob.name, &path) {
            Some(was) => Ok(Entry { knob: name, path, was, set, thread: None }),
            None => Err(GuardError::NotAllowed(name)),
        }
    }

    /// A thread, with its present policy and the policy to be set.
    pub(super) fn of_thread(id: i32, name: &str, set: String) -> Result<Entry, GuardError> {
        let path = PathBuf::from(format!("/proc/{id}"));
        let ended = || GuardError::Ended(name.to_owned());
        let (found, started) = identity(id).ok_or_else(ended)?;
        let thread = Some(ThreadIdentity { id, started });
        let set = Some(set);
        let entry = Entry { knob: name.to_owned(), path, was: String::new(), set, thread };
        let was = entry.value().filter(|_| found == name).ok_or_else(ended)?;
        Ok(Entry { was, ..entry })
    }

    /// Whether this is an entry for this thread.
    pub(super) fn is_of(&self, thread: i32, name: &str) -> bool {
        self.thread.as_ref().is_some_and(|one| one.id == thread) && self.knob == name
    }

    /// Whether both are entries for the same file or thread.
    pub(super) fn same_knob(&self, other: &Entry) -> bool {
        (&self.knob, &self.path) == (&other.knob, &other.path)
    }

    /// Sets the value, and reads it back: some files accept a value and keep another.
    pub(super) fn apply(&self, to: &str) -> Result<(), GuardError> {
        self.put(to).map_err(|error| self.why_not(to, &error))?;
        let now = self.value().unwrap_or_default();
        if now == to {
            return Ok(());
        }
        if self.has_ended() {
            return Err(GuardError::Ended(self.knob.clone()));
        }
        // The value read back would look like another's change when everything is restored.
        let restored = self.put(&self.was);
        let stays = if restored.is_ok() { "" } else { ", and can't be restored" };
        let path = self.path.display();
        Err(self.refused(to, format!("{path} says {now} after it was written{stays}")))
    }

    fn why_not(&self, to: &str, error: &io::Error) -> GuardError {
        let path = self.path.display();
        match (error.kind(), &self.thread) {
            _ if self.has_ended() => GuardError::Ended(self.knob.clone()),
            (io::ErrorKind::PermissionDenied, None) => GuardError::NotAllowed(self.knob.clone()),
            (_, None) => self.refused(to, format!("writing {path}: {error}")),
            (_, Some(_)) => self.refused(to, format!("sched_setattr(2): {error}")),
        }
    }

    fn refused(&self, to: &str, why: String) -> GuardError {
        GuardError::Refused(self.knob.clone(), to.to_owned(), why)
    }

    /// The present value; None for a thread that has ended, and where it can't be read.
    fn value(&self) -> Option<String> {
        match &self.thread {
            Some(_) if self.has_ended() => None,
            Some(thread) => sched::policy_of(thread.id).map(|policy| policy.to_string()),
            None => knob::read(&self.knob, &self.path),
        }
    }

    fn put(&self, value: &str) -> io::Result<()> {
        let Some(thread) = &self.thread else {
            return knob::put(&self.knob, &self.path, value);
        };
        let policy = match value.parse().map_err(io::Error::other)? {
            Policy::Other => sched::Policy::Other,
            Policy::Fifo(priority) => sched::Policy::Fifo(priority),
            Policy::Rr(priority) => sched::Policy::Rr(priority),
        };
        sched::set_policy_of(thread.id, policy)
    }

    /// Whether this run may have set the present value. A file that can't be read may have any
    /// value; a thread whose policy can't be expressed has one that latlab sets for no thread.
    fn may_be_ours(&self, now: Option<&str>) -> bool {
        match now {
            Some(now) => self.set.as_ref().is_none_or(|set| now == set),
            None => self.thread.is_none(),
        }
    }

    fn has_ended(&self) -> bool {
        let lives = |thread: &ThreadIdentity| {
            identity(thread.id).is_some_and(|now| now == (self.knob.clone(), thread.started))
        };
        self.thread.as_ref().is_some_and(|thread| !lives(thread))
    }
}

/// The name of a thread, and the time at which it was started.
fn identity(id: i32) -> Option<(String, u64)> {
    const START_TIME: usize = 22;
    Some((procfs::name(id)?, procfs::stat_field(id, START_TIME)?))
}

/// Merges the entries for the same file or thread as `next` that come before it, so that a journal
/// does not grow with every change. Until `next` has been applied, both the merged entry and `next`
/// are needed.
pub(super) fn merge(entries: &mut Vec<Entry>, next: &Entry) {
    let mut merged: Vec<Entry> = Vec::new();
    for entry in entries.drain(..) {
        let before = merged.iter_mut().rfind(|one| one.same_knob(&entry));
        match before.filter(|before| next.same_knob(before)) {
            Some(before) if before.set.as_ref() == Some(&entry.was) => before.set = entry.set,
            _ => merged.push(entry),
        }
    }
    *entries = merged;
}

/// The outcome of restoring entries.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Knobs that another program has changed since, which keep that value.
    pub(super) left_alone: Vec<String>,
    /// Entries that could not be restored, in their original order, and why.
    pub(super) failed: Vec<(Entry, String)>,
}

impl Outcome {
    /// The entries that are still to be restored.
    pub(super) fn remaining(&self) -> Vec<Entry> {
        self.failed.iter().map(|(entry, _)| entry.clone()).collect()
    }
}

/// Restores the old values, the newest change first.
pub(super) fn restore(entries: &[Entry]) -> Outcome {
    let mut outcome = Outcome::default();
    for entry in entries.iter().rev().filter(|entry| !entry.has_ended()) {
        outcome.restore(entry);
    }
    outcome.failed.reverse();
    outcome
}

impl Outcome {
    fn restore(&mut self, entry: &Entry) {
        let now = entry.value();
        let newer = self.failed.iter().find(|(newer, _)| newer.same_knob(entry));
        let error = match newer {
            // The file still has the value of the newer entry.
            Some((_, why)) => Some(why.clone()),
            None if entry.may_be_ours(now.as_deref()) => {
                entry.put(&entry.was).err().map(|e| e.to_string())
            }
            None => None,
        };
        if now.as_ref() == Some(&entry.was) || entry.has_ended() {
            return;
        }
        match error {
            Some(why) => self.failed.push((entry.clone(), why)),
            None if newer.is_none() && !entry.may_be_ours(now.as_deref()) => {
                self.left_alone.push(entry.knob.clone());
            }
            None => {}
        }
    }
}
