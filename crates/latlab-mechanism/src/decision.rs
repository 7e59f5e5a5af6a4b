//! Decisions of mechanisms, with their reasons, as plain data.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A change to make, or to stop making, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// Set a knob.
    Set {
        /// The mechanism that decided it.
        mechanism: String,
        /// The knob.
        knob: String,
        /// The thread whose policy the knob is; none for a knob that is a file.
        thread: Option<i32>,
        /// Its value so far.
        was: String,
        /// The value to set.
        to: String,
        /// The reason, as the end of a sentence.
        because: String,
    },
    /// Restore a knob that was set.
    #[serde(rename = "GiveBack")]
    Restore {
        /// The mechanism that had set it.
        mechanism: String,
        /// The knob.
        knob: String,
        /// The thread whose policy the knob is; none for a knob that is a file.
        thread: Option<i32>,
        /// The reason, as the end of a sentence.
        because: String,
        /// Whether it is left alone from now on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        for_good: bool,
    },
    /// Leave a knob alone from now on.
    Stop {
        /// The mechanism that had set it.
        mechanism: String,
        /// The knob.
        knob: String,
        /// The thread whose policy the knob is; none for a knob that is a file.
        thread: Option<i32>,
        /// The reason, as the end of a sentence.
        because: String,
    },
}

impl Decision {
    /// Returns the mechanism that decided it, or that had set the knob.
    pub fn mechanism(&self) -> &str {
        match self {
            Decision::Set { mechanism, .. }
            | Decision::Restore { mechanism, .. }
            | Decision::Stop { mechanism, .. } => mechanism,
        }
    }

    /// Returns the knob.
    pub fn knob(&self) -> &str {
        match self {
            Decision::Set { knob, .. }
            | Decision::Restore { knob, .. }
            | Decision::Stop { knob, .. } => knob,
        }
    }

    /// Returns the thread whose policy the knob is; none for a knob that is a file.
    pub fn thread(&self) -> Option<i32> {
        match self {
            Decision::Set { thread, .. }
            | Decision::Restore { thread, .. }
            | Decision::Stop { thread, .. } => *thread,
        }
    }
}

/// A sentence for users, which does not say whether the decision was carried out.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mechanism, knob) = (self.mechanism(), self.knob());
        match self {
            Decision::Set { was, to, because, .. } => {
                write!(f, "{mechanism}: {knob} goes from {was} to {to}: {because}")
            }
            Decision::Restore { because, .. } => {
                write!(f, "{mechanism}: {knob} is restored: {because}")
            }
            Decision::Stop { because, .. } => {
                write!(f, "{mechanism}: {knob} is left alone from now on: {because}")
            }
        }
    }
}
