//! The errors of the guard.

use crate::knob::Unreadable;
use std::io;

/// Why a knob could not be set or restored.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// There is no such knob.
    #[error("there is no knob '{0}': {1}")]
    Unknown(String, String),
    /// The kernel does not accept the value.
    #[error("{0}={1} was refused by the kernel: {2}")]
    Refused(String, String, String),
    /// The value is not a number, which this knob takes.
    #[error("{0}={1} is not valid: {0} takes a whole number of microseconds")]
    NotANumber(String, String),
    /// This machine has no such knob.
    #[error("this machine has no {0}: {1} is missing")]
    Missing(String, String),
    /// The caller may not set it.
    #[error("changing {0} needs root: run latlab as root, or leave --set {0} out")]
    NotAllowed(String),
    /// Its value can't be read, so it could not be restored.
    #[error("{0} can't be changed: {1}")]
    KnobUnreadable(String, Unreadable),
    /// The governor is `userspace`: the frequency that a program has chosen would be lost.
    #[error(
        "{0} is userspace in {1}, and could not be restored with the frequency that a program has \
         chosen there: end that program and choose another governor first"
    )]
    Userspace(String, String),
    /// The caller may not read it, or not write the journal.
    #[error(
        "{0} can't be saved, so it could not be restored: run latlab as root, or leave the load out"
    )]
    NotSaved(String),
    /// Another run has set it, and is running or could not restore it.
    #[error(
        "another latlab (process {pid}) has set {knob}: wait until it has ended, or run `latlab \
         adapt --restore` if it was killed"
    )]
    Taken {
        /// The knob.
        knob: String,
        /// The process that has set it.
        pid: u32,
    },
    /// It could not be restored. It stays in the journal.
    #[error("{0} can't be restored yet: {1}")]
    Unrestored(String, String),
    /// It is not as it was set, so it was not restored.
    #[error("another program has changed {0}, so it stays as it is")]
    Changed(String),
    /// The thread whose policy was to be set has ended.
    #[error("thread {0} has ended")]
    Ended(String),
    /// The thread has ended while its policy was set, and another has its id.
    #[error("thread {knob} has ended while its policy was set: {heir}")]
    Reused {
        /// The name of the thread.
        knob: String,
        /// Which thread has its id now, in a sentence.
        heir: String,
    },
    /// The policy of a thread can't be read, so it was not changed.
    #[error("thread {0} can't be read, so it was not changed: {1}")]
    Unreadable(String, io::Error),
    /// The journals can't be read or the own can't be written, so this was not changed.
    #[error("the journals in {0} can't be used, so nothing more was changed: {1}")]
    Journal(String, io::Error),
    /// Knobs that were restored or left alone could not be removed from the journal.
    #[error(
        "the journal in {folder} can't be written ({error}): it still lists {knobs} as set, which \
         does no harm"
    )]
    JournalOutdated {
        /// The knobs, separated by commas.
        knobs: String,
        /// The folder of the journal.
        folder: String,
        /// The error of the write.
        error: io::Error,
    },
}

impl GuardError {
    /// A knob, or the list of its files, can't be read.
    pub(super) fn of_unreadable(knob: &str, why: Unreadable) -> GuardError {
        match why {
            Unreadable::NotRoot(_) => GuardError::NotAllowed(knob.to_owned()),
            why => GuardError::KnobUnreadable(knob.to_owned(), why),
        }
    }
}
