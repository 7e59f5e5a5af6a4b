//! How a command ends when it does not simply succeed: one sentence and an exit code.

use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// Why a command did not end with 0. The sentence says what was wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Failure {
    /// The measured answer is "worse" or "over the limit": exit 1.
    #[error("{0}")]
    Worse(String),
    /// It could not be done, bad input included: exit 2.
    #[error("{0}")]
    Failed(String),
    /// It can't be done on this machine: exit 3.
    #[error("{0}")]
    Unsupported(String),
}

/// What commands and the engine return.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// The same, with the name of what it happened to in front.
    pub(crate) fn about(self, what: &str) -> Failure {
        match self {
            Failure::Worse(why) => Failure::Worse(format!("{what}: {why}")),
            Failure::Failed(why) => Failure::Failed(format!("{what}: {why}")),
            Failure::Unsupported(why) => Failure::Unsupported(format!("{what}: {why}")),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Worse(_) => 1,
            Failure::Failed(_) => 2,
            Failure::Unsupported(_) => 3,
        })
    }
}

/// `error` as a failure with the name of what it happened to in front.
pub(crate) fn failed(what: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{what}: {error}"))
}
