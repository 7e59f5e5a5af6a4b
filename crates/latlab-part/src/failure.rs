//! A failed command: one sentence and an exit code. Also locking of mutexes that a panicked thread
//! has poisoned.

use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Failure of a command. It has no chain of sources: the sentence contains what they said, and it may come from a
/// guest or another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// What the caller does about it, and the exit code.
    pub kind: FailureKind,
    /// The sentence: what was wrong, where, and what to do.
    pub text: String,
}

/// How a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The command ran, and its result is negative, as a limit that was exceeded: exit 1.
    Worse,
    /// The command failed, or its input was wrong: exit 2.
    Failed,
    /// Something that the command had changed could not be restored: exit 2.
    Unrestored,
    /// This machine does not support it: exit 3.
    Unsupported,
    /// It is a measurement of another kernel than this machine runs: exit 3.
    OtherKernel,
    /// The measurement was ended on request before its time. From a guest, its data are lost: exit
    /// 4.
    CutShort,
}

/// The result of commands and the engine.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Returns a failure of this kind.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Failure {
        Failure { kind, text: text.into() }
    }

    /// Returns a [`FailureKind::Worse`].
    pub fn worse(text: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Worse, text)
    }

    /// Returns a [`FailureKind::Failed`].
    pub fn failed(text: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Failed, text)
    }

    /// Returns a [`FailureKind::Unrestored`].
    pub fn unrestored(text: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Unrestored, text)
    }

    /// Returns a [`FailureKind::Unsupported`].
    pub fn unsupported(text: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Unsupported, text)
    }

    /// Returns a [`FailureKind::OtherKernel`].
    pub fn other_kernel(text: impl Into<String>) -> Failure {
        Failure::new(FailureKind::OtherKernel, text)
    }

    /// Returns a [`FailureKind::CutShort`].
    pub fn cut_short(text: impl Into<String>) -> Failure {
        Failure::new(FailureKind::CutShort, text)
    }

    /// Puts the name of the file, option or part that failed in front of the sentence.
    #[must_use]
    pub fn about(self, what: &str) -> Failure {
        Failure { text: format!("{what}: {self}"), ..self }
    }

    /// Adds this to the sentence of a failure of this kind.
    #[must_use]
    pub fn extended(self, kind: FailureKind, by: &str) -> Failure {
        if self.kind == kind { Failure { text: self.text + by, ..self } } else { self }
    }

    /// Adds sentences about actions before this failure.
    #[must_use]
    pub fn followed_by(self, sentences: &[String]) -> Failure {
        if sentences.is_empty() {
            return self;
        }
        Failure { text: format!("{self}; before that: {}", sentences.join("; ")), ..self }
    }

    /// The failure to restore these knobs and threads; none if there are none.
    pub fn not_restored(names: &[String]) -> Option<Failure> {
        (!names.is_empty()).then(|| {
            Failure::unrestored(format!(
                "not restored: {}; run `latlab adapt --restore` when the cause is gone",
                names.join(", ")
            ))
        })
    }

    /// Adds what could not be restored after this failure.
    #[must_use]
    pub fn with_unrestored(self, unrestored: Option<Failure>) -> Failure {
        match unrestored {
            Some(unrestored) => Failure::unrestored(format!("{self}; {unrestored}")),
            None => self,
        }
    }

    /// The exit code of a command that fails so.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            FailureKind::Worse => 1,
            FailureKind::Failed | FailureKind::Unrestored => 2,
            FailureKind::Unsupported | FailureKind::OtherKernel => 3,
            FailureKind::CutShort => 4,
        })
    }
}

/// Makes a failure of the error of a result.
pub trait Context<T> {
    /// With the name of the option or part that failed in front.
    fn context(self, what: &str) -> Result<T>;
    /// With the path that failed in front.
    fn at(self, path: &Path) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: &str) -> Result<T> {
        self.map_err(|error| failed(what, error))
    }

    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| failed(&path.display().to_string(), error))
    }
}

/// Makes a failure of an error, with the name of the file, option or part that failed in front.
pub fn failed(what: &str, error: impl Display) -> Failure {
    Failure::failed(format!("{what}: {error}"))
}

/// Locks `mutex`, even if a thread has panicked while it held the lock. Only for data that is valid
/// after each single change.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// The value of a locking operation, even if a thread has panicked while it held the lock.
pub fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_names_what_could_not_be_restored_after_it() {
        let refused = || Failure::unsupported("no debugfs");
        assert_eq!(refused().with_unrestored(Failure::not_restored(&[])), refused());
        let names = ["governor (EIO)", "ksm (EIO)"].map(str::to_owned);
        let failure = refused().with_unrestored(Failure::not_restored(&names));
        let sentence = "no debugfs; not restored: governor (EIO), ksm (EIO); run `latlab adapt \
                        --restore` when the cause is gone";
        assert_eq!(failure, Failure::unrestored(sentence));
    }
}
