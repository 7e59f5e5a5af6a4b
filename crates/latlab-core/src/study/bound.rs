//! Bounds: where the limit in a claim comes from, and how it was changed.

use super::claim::Fault;
use serde::Deserialize;
use std::fmt;

/// The origin of the limits in a claim, written down before anything is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The kind of origin.
    pub origin: Origin,
    /// The reason, in words.
    pub reason: String,
}

/// The kinds of origin of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The paper prints or draws the figure.
    Paper,
    /// It follows from the mechanism, such as the length of a tick.
    Physics,
    /// The study's own set-up decides the outcome: a claim that holds says nothing about the kernel.
    Construction,
}

impl Origin {
    const ALL: [(&'static str, Origin); 3] = [
        ("paper", Origin::Paper),
        ("physics", Origin::Physics),
        ("by construction", Origin::Construction),
    ];

    fn word(self) -> &'static str {
        let word = Origin::ALL.iter().find(|(_, origin)| *origin == self);
        word.map_or("", |(word, _)| word)
    }
}

impl Bound {
    /// Parses `paper: REASON`, `physics: REASON` or `by construction: REASON`. A fault is at byte 0.
    pub fn read(text: &str) -> Result<Bound, Fault> {
        let parts = text.split_once(':').map(|(origin, reason)| (origin.trim(), reason.trim()));
        let read = parts.filter(|(_, reason)| !reason.is_empty()).and_then(|(word, reason)| {
            let (_, origin) = Origin::ALL.iter().find(|(known, _)| *known == word)?;
            Some(Bound { origin: *origin, reason: reason.to_owned() })
        });
        read.ok_or_else(|| Fault {
            at: 0,
            why: "a bound begins with 'paper:', 'physics:' or 'by construction:', followed by the \
                  reason"
                .to_owned(),
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin.word(), self.reason)
    }
}

/// A change of a bound after figures had been measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundChange {
    /// The claim or the limit before.
    pub from: String,
    /// The claim or the limit afterwards.
    pub to: String,
    /// The date.
    pub when: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for BoundChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BoundChange { from, to, when, why } = self;
        write!(f, "changed on {when} from {from} to {to}: {why}")
    }
}
