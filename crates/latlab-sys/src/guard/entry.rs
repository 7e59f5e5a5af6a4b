//! One change as the journal has it: how it is made, and undone.

use super::GuardError;
use crate::knob::{self, Knob};
use crate::sched;
use latlab_core::mechanism::Policy;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// One file or thread that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) knob: String,
    pub(super) path: PathBuf,
    pub(super) was: String,
    /// None where it is changed again and again, so that any value may be ours.
    pub(super) set: Option<String>,
    /// The thread whose policy it is; none for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) thread: Option<Thread>,
}

/// Who a thread is. Its name alone is not enough: numbers are given again, and programs may call
/// their threads what they like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thread {
    id: i32,
    /// When it was started, in ticks since the machine was.
    started: u64,
}

impl Entry {
    /// What a file says, and will say.
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

    /// The policy a thread has, and will have.
    pub(super) fn of_thread(id: i32, name: &str, set: String) -> Result<Entry, GuardError> {
        let path = PathBuf::from(format!("/proc/{id}"));
        let ended = || GuardError::Ended(name.to_owned());
        let (found, started) = identity(id).ok_or_else(ended)?;
        let thread = Some(Thread { id, started });
        let set = Some(set);
        let entry = Entry { knob: name.to_owned(), path, was: String::new(), set, thread };
        let was = entry.now().filter(|_| found == name).ok_or_else(ended)?;
        Ok(Entry { was, ..entry })
    }

    /// Whether it is about this thread.
    pub(super) fn is_of(&self, thread: i32, name: &str) -> bool {
        self.thread.as_ref().is_some_and(|one| one.id == thread) && self.knob == name
    }

    /// Whether both are about the same file or thread.
    pub(super) fn same_knob(&self, other: &Entry) -> bool {
        (&self.knob, &self.path) == (&other.knob, &other.path)
    }

    /// What it is now. A thread that has ended is nothing.
    fn now(&self) -> Option<String> {
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

    /// Has it be that, and reads it back: some files take a value and keep another.
    pub(super) fn turn(&self, to: &str) -> Result<(), GuardError> {
        let refused = |why| GuardError::Refused(self.knob.clone(), to.to_owned(), why);
        let path = self.path.display();
        if let Err(error) = self.put(to) {
            return Err(match (error.kind(), &self.thread) {
                _ if self.has_ended() => GuardError::Ended(self.knob.clone()),
                (io::ErrorKind::PermissionDenied, None) => {
                    GuardError::NotAllowed(self.knob.clone())
                }
                (_, None) => refused(format!("writing {path}: {error}")),
                (_, Some(_)) => refused(format!("sched_setattr(2): {error}")),
            });
        }
        let now = self.now().unwrap_or_default();
        if now == to {
            return Ok(());
        }
        if self.has_ended() {
            return Err(GuardError::Ended(self.knob.clone()));
        }
        // What it says now would look like somebody else's doing when all is given back.
        let back = self.put(&self.was);
        let stays = if back.is_ok() { "" } else { ", and can't be turned back" };
        Err(refused(format!("{path} says {now} after it was written{stays}")))
    }

    /// Whether what it is now may be our doing. Of a file that can't be read nobody knows; a
    /// thread that can't be told has a policy that we give nobody.
    fn may_be_ours(&self, now: Option<&str>) -> bool {
        match now {
            Some(now) => self.set.as_ref().is_none_or(|set| now == set),
            None => self.thread.is_none(),
        }
    }

    fn has_ended(&self) -> bool {
        let is_there = |thread: &Thread| {
            identity(thread.id).is_some_and(|now| now == (self.knob.clone(), thread.started))
        };
        self.thread.as_ref().is_some_and(|thread| !is_there(thread))
    }
}

/// What a thread is called, and when it was started (`proc_pid_stat(5)`).
fn identity(id: i32) -> Option<(String, u64)> {
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in brackets, and may have some itself. The start is the 22nd, the state the 3rd.
    let (_, rest) = text.rsplit_once(") ")?;
    let started = rest.split(' ').nth(22 - 3)?.parse().ok()?;
    Some((name.trim_end_matches('\n').to_owned(), started))
}

/// Makes one of the entries before `next` for the same file or thread, so that a journal does not
/// grow with every change. While `next` has not been made, both have to be there.
pub(super) fn join(entries: &mut Vec<Entry>, next: &Entry) {
    let mut joined: Vec<Entry> = Vec::new();
    for entry in entries.drain(..) {
        let before = joined.iter_mut().rfind(|one| one.same_knob(&entry));
        match before.filter(|before| next.same_knob(before)) {
            Some(before) if before.set.as_ref() == Some(&entry.was) => before.set = entry.set,
            _ => joined.push(entry),
        }
    }
    *entries = joined;
}

/// What became of entries that were to be given back.
#[derive(Debug, Default)]
pub(super) struct GivenBack {
    /// Knobs that somebody else has turned since.
    pub(super) left: Vec<String>,
    /// What could not be put back and is still to be, in the order in which it was made, and why.
    pub(super) owed: Vec<(Entry, String)>,
}

impl GivenBack {
    /// What is still to be given back.
    pub(super) fn still(&self) -> Vec<Entry> {
        self.owed.iter().map(|(entry, _)| entry.clone()).collect()
    }
}

/// Puts the old values back, the newest change first.
pub(super) fn give_back(entries: &[Entry]) -> GivenBack {
    let mut all = GivenBack::default();
    for entry in entries.iter().rev().filter(|entry| !entry.has_ended()) {
        let now = entry.now();
        let newer = all.owed.iter().find(|(newer, _)| newer.same_knob(entry));
        let why = match newer {
            // It still is what that has made of it.
            Some((_, why)) => Some(why.clone()),
            None if entry.may_be_ours(now.as_deref()) => {
                entry.put(&entry.was).err().map(|e| e.to_string())
            }
            None => {
                if now.as_ref() != Some(&entry.was) && !entry.has_ended() {
                    all.left.push(entry.knob.clone());
                }
                None
            }
        };
        if let Some(why) = why
            && now.as_ref() != Some(&entry.was)
            && !entry.has_ended()
        {
            all.owed.push((entry.clone(), why));
        }
    }
    all.owed.reverse();
    all
}
