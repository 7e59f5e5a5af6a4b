//! One change in a journal: how it is made and undone.

use super::GuardError;
use super::identity::ThreadIdentity;
use crate::knob::{self, Knob};
use crate::root::Root;
use crate::{process, procfs, sched};
use latlab_mechanism::Policy;
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

impl Entry {
    /// A file, with its present value and the value to be set.
    pub(super) fn of_file(
        knob: &Knob,
        path: PathBuf,
        set: Option<String>,
    ) -> Result<Entry, GuardError> {
        let name = knob.name.to_owned();
        match knob::read(knob.name, &path) {
            // The kernel forgets `scaling_setspeed` when the governor changes.
            Some(was) if name == "governor" && was == "userspace" => {
                Err(GuardError::Userspace(name, path.display().to_string()))
            }
            Some(was) => Ok(Entry { knob: name, path, was, set, thread: None }),
            None => Err(GuardError::of_unreadable(knob.name, knob::why_unreadable(&path))),
        }
    }

    /// A thread, with its present policy and the policy to be set.
    pub(super) fn of_thread(id: i32, name: &str, set: String) -> Result<Entry, GuardError> {
        let path = PathBuf::from(format!("/proc/{id}"));
        let unknown = |error| GuardError::Unreadable(name.to_owned(), error);
        let ended = || GuardError::Ended(name.to_owned());
        let thread = Some(ThreadIdentity::find(id, name).map_err(unknown)?.ok_or_else(ended)?);
        let set = Some(set);
        let entry = Entry { knob: name.to_owned(), path, was: String::new(), set, thread };
        let was = entry.value().map_err(unknown)?.ok_or_else(ended)?;
        Ok(Entry { was, ..entry })
    }

    /// Whether it is of a thread, or of a file that this knob has on a machine at `root`.
    pub(super) fn is_known(&self, root: &Root) -> bool {
        let knob = || Knob::any_named(&self.knob);
        self.thread.is_some() || knob().is_some_and(|knob| knob.may_have(root, &self.path))
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
        let now = self.value();
        if now.as_ref().is_ok_and(|now| now.as_deref() == Some(to)) {
            return Ok(());
        }
        if self.has_surely_ended() {
            let knob = self.knob.clone();
            return Err(match self.heir() {
                Some(heir) => GuardError::Reused { knob, heir },
                None => GuardError::Ended(knob),
            });
        }
        // The value read back would look like another's change when everything is restored.
        let restored = self.put_back();
        let stays = if restored.is_ok() { "" } else { ", and can't be restored" };
        let path = self.path.display();
        Err(self.refused(
            to,
            match now {
                Ok(Some(now)) => format!("{path} says {now} after it was written{stays}"),
                Ok(None) if self.thread.is_none() => {
                    let why = knob::why_unreadable(&self.path);
                    format!("after it was written, {why}{stays}")
                }
                Ok(None) => format!("{path} has another class after it was set{stays}"),
                Err(error) => format!("{path} can't be read after it was written: {error}{stays}"),
            },
        ))
    }

    fn why_not(&self, to: &str, error: &io::Error) -> GuardError {
        let path = self.path.display();
        match (error.kind(), &self.thread) {
            _ if self.has_surely_ended() => GuardError::Ended(self.knob.clone()),
            (io::ErrorKind::PermissionDenied, None) if !process::is_root() => {
                GuardError::NotAllowed(self.knob.clone())
            }
            (_, None) => self.refused(to, format!("writing {path}: {error}")),
            (_, Some(_)) => self.refused(to, format!("sched_setattr(2): {error}")),
        }
    }

    fn refused(&self, to: &str, why: String) -> GuardError {
        GuardError::Refused(self.knob.clone(), to.to_owned(), why)
    }

    /// The present value. None for a thread that has ended or has a policy that latlab never sets,
    /// and for a file that can't be read.
    fn value(&self) -> io::Result<Option<String>> {
        let Some(thread) = &self.thread else { return Ok(knob::read(&self.knob, &self.path)) };
        if self.has_ended()? {
            return Ok(None);
        }
        match sched::policy_of(thread.id) {
            Err(error) if procfs::is_gone(&error) => Ok(None),
            policy => Ok(policy?.map(|policy| policy.to_string())),
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
        // Checked here once more: its id may belong to another thread by now.
        if self.has_ended()? {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        sched::set_policy_of(thread.id, policy)
    }

    /// Sets the old value again, and reads a file back. For a thread that has ended there is nothing to
    /// do.
    fn put_back(&self) -> io::Result<()> {
        match self.put(&self.was) {
            Err(_) if self.has_surely_ended() => Ok(()),
            Ok(()) if self.thread.is_none() => self.check_restored(),
            Ok(()) => self.heir().map_or(Ok(()), |heir| Err(io::Error::other(heir))),
            refused => refused,
        }
    }

    /// An error where a file does not have the old value, which was written.
    fn check_restored(&self) -> io::Result<()> {
        let (path, was) = (self.path.display(), &self.was);
        let now = knob::read(&self.knob, &self.path);
        if now.as_ref() == Some(was) {
            return Ok(());
        }
        let now = now.unwrap_or_else(|| "nothing that can be read".to_owned());
        Err(io::Error::other(format!("{path} says {now} after {was} was written")))
    }

    /// Which other thread has the id now, in a sentence: it got the policy where that was set after
    /// its thread had ended. None for a file, and where no other thread has the id.
    fn heir(&self) -> Option<String> {
        let heir = self.thread.as_ref()?.heir(&self.knob)?;
        let path = self.path.display();
        Some(format!("{heir} ({path}), which has its id now, may have got the policy: check it"))
    }

    /// Whether this run may have set the present value. A file that can't be read may have any
    /// value. A thread whose policy can't be expressed has a policy that latlab never sets.
    fn may_be_ours(&self, now: Option<&str>) -> bool {
        match now {
            Some(now) => self.set.as_ref().is_none_or(|set| now == set),
            None => self.thread.is_none(),
        }
    }

    /// The value that was set, and the different value that the file has now. None if the file has
    /// the set value, or any value may be this run's; none for a thread.
    pub(super) fn other_value(&self) -> Option<(String, String)> {
        let set = self.set.clone().filter(|_| self.thread.is_none())?;
        let now = self.value().ok()??;
        (now != set).then_some((set, now))
    }

    /// This entry with the value that the file has after latlab could not restore it: the kernel may
    /// have kept another one than was written, which is no other program's change.
    fn still_ours(mut self) -> Entry {
        if self.thread.is_none() && self.set.is_some() {
            self.set = knob::read(&self.knob, &self.path).or(self.set);
        }
        self
    }

    /// Whether its thread has ended, so that there is nothing to restore. An error where that can't
    /// be known.
    fn has_ended(&self) -> io::Result<bool> {
        self.thread.as_ref().map_or(Ok(false), |thread| thread.has_ended(&self.knob))
    }

    fn has_surely_ended(&self) -> bool {
        self.has_ended().unwrap_or(false)
    }
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
    /// Entries of files and threads that another program has changed since, which keep that value.
    pub(super) left_alone: Vec<Entry>,
    /// Entries that could not be restored, in their original order, and why.
    pub(super) failed: Vec<(Entry, String)>,
    /// The oldest entry of each file and thread whose old value was put back.
    put_back: Vec<Entry>,
    /// The newest entry of each file and thread, and the value found there.
    found: Vec<(Entry, Option<String>)>,
    /// The entries of threads that have ended.
    ended: Vec<Entry>,
}

impl Outcome {
    /// The value found in the file or thread of this entry, where it could be read.
    pub(super) fn found(&self, entry: &Entry) -> Option<&str> {
        self.found.iter().find(|(one, _)| one.same_knob(entry))?.1.as_deref()
    }

    /// The entries whose old values their files and threads have now, because they were put back.
    /// Threads that have ended have none.
    pub(super) fn restored(&self) -> impl Iterator<Item = &Entry> {
        let is_whole = |entry: &&Entry| !self.failed.iter().any(|(one, _)| one.same_knob(entry));
        self.put_back.iter().filter(is_whole).filter(|entry| !entry.has_surely_ended())
    }

    /// Whether another program has changed the file or thread of this entry.
    pub(super) fn leaves_alone(&self, entry: &Entry) -> bool {
        self.left_alone.iter().any(|one| one.same_knob(entry))
    }

    /// Whether this is an entry of a thread that has ended.
    pub(super) fn has_ended(&self, entry: &Entry) -> bool {
        self.ended.contains(entry)
    }

    /// An error where not all have their old values.
    pub(super) fn check(&self) -> Result<(), GuardError> {
        if let Some((entry, why)) = self.failed.first() {
            return Err(GuardError::Unrestored(entry.knob.clone(), why.clone()));
        }
        let changed = self.left_alone.first();
        changed.map_or(Ok(()), |entry| Err(GuardError::Changed(entry.knob.clone())))
    }

    /// The entries that are still to be restored.
    pub(super) fn remaining(&self) -> Vec<Entry> {
        self.failed.iter().map(|(entry, _)| entry.clone()).collect()
    }
}

/// Restores the old values, the newest change first.
pub(super) fn restore(entries: &[Entry]) -> Outcome {
    let mut outcome = Outcome::default();
    for entry in entries.iter().rev() {
        match entry.has_ended().and_then(|ended| Ok((ended, entry.value()?))) {
            Ok((true, _)) => outcome.ended.push(entry.clone()),
            Ok((false, now)) => {
                if !outcome.found.iter().any(|(newer, _)| newer.same_knob(entry)) {
                    outcome.found.push((entry.clone(), now.clone()));
                }
                outcome.restore(entry, now.as_deref());
            }
            Err(why) => outcome.failed.push((entry.clone(), why.to_string())),
        }
    }
    outcome.failed.reverse();
    outcome
}

impl Outcome {
    /// Sets the old value again, and notes it.
    fn put_back(&mut self, entry: &Entry) -> io::Result<()> {
        entry.put_back()?;
        self.put_back.retain(|newer| !newer.same_knob(entry));
        self.put_back.push(entry.clone());
        Ok(())
    }

    fn restore(&mut self, entry: &Entry, now: Option<&str>) {
        let newer = self.failed.iter().find(|(newer, _)| newer.same_knob(entry));
        let newer = newer.map(|(_, why)| why.clone());
        let error = match &newer {
            // The file still has the value of the newer entry.
            Some(why) => Some(why.clone()),
            None if entry.may_be_ours(now) => self.put_back(entry).err().map(|e| e.to_string()),
            None => None,
        };
        if now == Some(&entry.was) || (error.is_none() && entry.has_surely_ended()) {
            return;
        }
        match error {
            Some(why) if newer.is_none() => self.failed.push((entry.clone().still_ours(), why)),
            Some(why) => self.failed.push((entry.clone(), why)),
            None if newer.is_none() && !entry.may_be_ours(now) => {
                self.left_alone.push(entry.clone());
            }
            None => {}
        }
    }
}
