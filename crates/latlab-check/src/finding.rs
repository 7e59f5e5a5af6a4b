//! Findings about a thread as a whole, which may have no cycle, or not be real-time.

use super::event::Thread;
use super::report::Frame;
use super::rule::{Level, Rule};
use serde::{Deserialize, Serialize};

/// A breach of a rule outside of cycles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How serious it is.
    pub level: Level,
    /// Name of the thread.
    pub name: String,
    /// Its ID.
    pub tid: u32,
    /// ID of its process.
    pub pid: u32,
    /// Its policy and priority.
    pub policy: String,
    /// What it did, or what was done to it.
    pub subject: String,
    /// What is missing, or what else is known, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub details: Vec<String>,
    /// How often.
    pub count: u64,
    /// The user's function, with file and line if they are known.
    pub place: Option<String>,
    /// The stack, the innermost function first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stack: Vec<Frame>,
}

/// A finding about a thread, without its subject.
pub(super) fn about(thread: Thread, rule: Rule) -> Finding {
    Finding {
        rule,
        level: rule.level(),
        name: thread.comm.to_string(),
        tid: thread.tid,
        pid: thread.pid,
        policy: thread.policy_in_words(),
        subject: String::new(),
        details: Vec::new(),
        count: 1,
        place: None,
        stack: Vec::new(),
    }
}
