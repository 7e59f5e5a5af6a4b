//! A failed command: one sentence and an exit code. Also locking of mutexes that a panicked thread
//! has poisoned.

use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Failure of a command. The sentence says what was wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "lowercase")]
pub enum Failure {
    /// The command ran, and its result is negative, as a limit that was exceeded: exit 1.
    #[error("{0}")]
    Worse(String),
    /// The command failed, or its input was wrong: exit 2.
    #[error("{0}")]
    Failed(String),
    /// Something that the command had changed could not be restored: exit 2.
    #[error("{0}")]
    Unrestored(String),
    /// This machine does not support it: exit 3.
    #[error("{0}")]
    Unsupported(String),
    /// It is a measurement of another kernel than this machine runs: exit 3.
    #[error("{0}")]
    OtherKernel(String),
    /// The measurement was ended on request before its time. From a guest, its data are lost: exit
    /// 4.
    #[error("{0}")]
    CutShort(String),
}

/// The result of commands and the engine.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Puts the name of the file, option or part that failed in front of the sentence.
    #[must_use]
    pub fn about(self, what: &str) -> Failure {
        self.with_text(|why| format!("{what}: {why}"))
    }

    /// Adds sentences about actions before this failure.
    #[must_use]
    pub fn followed_by(self, sentences: &[String]) -> Failure {
        if sentences.is_empty() {
            return self;
        }
        self.with_text(|why| format!("{why}; before that: {}", sentences.join("; ")))
    }

    fn with_text(self, text: impl FnOnce(String) -> String) -> Failure {
        match self {
            Failure::Worse(why) => Failure::Worse(text(why)),
            Failure::Failed(why) => Failure::Failed(text(why)),
            Failure::Unrestored(why) => Failure::Unrestored(text(why)),
            Failure::Unsupported(why) => Failure::Unsupported(text(why)),
            Failure::OtherKernel(why) => Failure::OtherKernel(text(why)),
            Failure::CutShort(why) => Failure::CutShort(text(why)),
        }
    }

    /// The failure to restore these knobs and threads; none if there are none.
    pub fn unrestored(names: &[String]) -> Option<Failure> {
        (!names.is_empty()).then(|| {
            Failure::Unrestored(format!(
                "not restored: {}; run `latlab adapt --restore` when the cause is gone",
                names.join(", ")
            ))
        })
    }

    /// Adds what could not be restored after this failure.
    #[must_use]
    pub fn with_unrestored(self, unrestored: Option<Failure>) -> Failure {
        match unrestored {
            Some(unrestored) => Failure::Unrestored(format!("{self}; {unrestored}")),
            None => self,
        }
    }

    /// The exit code of a command that fails so.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Worse(_) => 1,
            Failure::Failed(_) | Failure::Unrestored(_) => 2,
            Failure::Unsupported(_) | Failure::OtherKernel(_) => 3,
            Failure::CutShort(_) => 4,
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
    Failure::Failed(format!("{what}: {error}"))
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
        let refused = || Failure::Unsupported("no debugfs".to_owned());
        assert_eq!(refused().with_unrestored(Failure::unrestored(&[])), refused());
        let names = ["governor (EIO)", "ksm (EIO)"].map(str::to_owned);
        let failure = refused().with_unrestored(Failure::unrestored(&names));
        let sentence = "no debugfs; not restored: governor (EIO), ksm (EIO); run `latlab adapt \
                        --restore` when the cause is gone";
        assert_eq!(failure, Failure::Unrestored(sentence.to_owned()));
    }
}
