//! Scheduling policy and priority of a thread, as users write it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A scheduling policy that mechanisms can set, with its priority (`sched(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// `SCHED_OTHER`, without a real-time priority.
    Other,
    /// `SCHED_FIFO` at this priority, 1 to 99.
    Fifo(u32),
    /// `SCHED_RR` at this priority, 1 to 99.
    Rr(u32),
}

impl Policy {
    /// Returns its real-time priority; 0 for `SCHED_OTHER`.
    pub fn priority(self) -> u32 {
        match self {
            Policy::Other => 0,
            Policy::Fifo(priority) | Policy::Rr(priority) => priority,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other => f.write_str("other"),
            Policy::Fifo(priority) => write!(f, "fifo {priority}"),
            Policy::Rr(priority) => write!(f, "rr {priority}"),
        }
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        let refused =
            || format!("'{text}' is not a policy: write other, fifo 1 … 99, or rr 1 … 99");
        if text == "other" {
            return Ok(Policy::Other);
        }
        let (name, priority) = text.split_once(' ').ok_or_else(refused)?;
        let priority = priority.parse().ok().filter(|priority| (1..=99).contains(priority));
        match (name, priority) {
            ("fifo", Some(priority)) => Ok(Policy::Fifo(priority)),
            ("rr", Some(priority)) => Ok(Policy::Rr(priority)),
            _ => Err(refused()),
        }
    }
}

impl TryFrom<String> for Policy {
    type Error = String;

    fn try_from(text: String) -> Result<Policy, String> {
        text.parse()
    }
}

impl From<Policy> for String {
    fn from(policy: Policy) -> String {
        policy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_survives_formatting_and_parsing() {
        for policy in [Policy::Other, Policy::Fifo(1), Policy::Fifo(99), Policy::Rr(5)] {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
    }

    #[test]
    fn policy_with_invalid_name_or_priority_is_refused() {
        for text in ["", "fifo", "fifo 0", "rr 100", "fifo  5", "deadline 3", "Other"] {
            let refused = text.parse::<Policy>().unwrap_err();
            assert!(refused.contains("fifo 1 … 99"), "{refused}");
        }
    }
}
