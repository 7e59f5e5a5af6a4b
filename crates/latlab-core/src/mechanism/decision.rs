//! What is to be done: plain data, which says why.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// A knob is to be turned.
    Set {
        /// Whose wish it is.
        mechanism: String,
        /// The knob.
        knob: String,
        /// The thread whose policy the knob is; none for a knob that is a file.
        thread: Option<i32>,
        /// What it is.
        was: String,
        /// What it is to be.
        to: String,
        /// Why, as the end of a sentence.
        because: String,
    },
    /// A knob that was turned is to be given back.
    GiveBack {
        /// Whose wish it was to have it turned.
        mechanism: String,
        /// The knob.
        knob: String,
        /// The thread whose policy the knob is; none for a knob that is a file.
        thread: Option<i32>,
        /// Why, as the end of a sentence.
        because: String,
        /// Whether it is not to be touched any more.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        for_good: bool,
    },
    /// A knob is not to be touched any more.
    Stop {
        /// Whose wish it was to have it turned.
        mechanism: String,
        /// The knob.
        knob: String,
        /// The thread whose policy the knob is; none for a knob that is a file.
        thread: Option<i32>,
        /// Why, as a sentence's second half.
        because: String,
    },
}

impl Decision {
    /// The mechanism whose wish it is or was.
    pub fn mechanism(&self) -> &str {
        match self {
            Decision::Set { mechanism, .. }
            | Decision::GiveBack { mechanism, .. }
            | Decision::Stop { mechanism, .. } => mechanism,
        }
    }

    /// The knob it is about.
    pub fn knob(&self) -> &str {
        match self {
            Decision::Set { knob, .. }
            | Decision::GiveBack { knob, .. }
            | Decision::Stop { knob, .. } => knob,
        }
    }

    /// The thread whose policy the knob is; none for a knob that is a file.
    pub fn thread(&self) -> Option<i32> {
        match self {
            Decision::Set { thread, .. }
            | Decision::GiveBack { thread, .. }
            | Decision::Stop { thread, .. } => *thread,
        }
    }
}

/// As it is said to people, whatever came of it.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mechanism, knob) = (self.mechanism(), self.knob());
        match self {
            Decision::Set { was, to, because, .. } => {
                write!(f, "{mechanism}: {knob} goes from {was} to {to}: {because}")
            }
            Decision::GiveBack { because, .. } => {
                write!(f, "{mechanism}: {knob} is given back: {because}")
            }
            Decision::Stop { because, .. } => {
                write!(f, "{mechanism}: {knob} is left alone from now on: {because}")
            }
        }
    }
}
