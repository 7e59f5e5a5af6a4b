//! Proofs of remedies: changes that can be made at once against the leading causes of late
//! wake-ups. The same is measured in turns with and without a change, which shows whether wake-ups
//! are less late with it.

mod candidates;
mod evidence;
mod judge;
mod remedy;
#[cfg(test)]
mod tests;
mod words;

pub use candidates::{Candidate, candidates, not_tried};
pub use judge::{Effect, Judged, JudgedFigure, judge};
pub use remedy::Remedy;

use serde::{Deserialize, Serialize};

/// What was tried against the leading causes of the late wake-ups of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Proofs {
    /// The remedies that were tried, in the order of their causes.
    pub tried: Vec<Proof>,
    /// Leading causes without a remedy that can be tried at once, each with advice, as clauses.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_tried: Vec<String>,
}

/// A remedy that was tried, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// The change.
    pub remedy: Remedy,
    /// The causes that it is a remedy for.
    pub causes: Vec<String>,
    /// Number of runs with and as many without it.
    pub pairs: usize,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured.
    Judged(Judged),
    /// It could not be made, or failed after some pairs, for this reason.
    Refused(String),
}

impl Proofs {
    /// Adds the proofs of another run.
    pub(crate) fn add(&mut self, other: &Proofs) {
        self.tried.extend(other.tried.iter().cloned());
        for clause in &other.not_tried {
            if !self.not_tried.contains(clause) {
                self.not_tried.push(clause.clone());
            }
        }
    }
}

impl Proof {
    /// Whether it helped.
    pub fn helped(&self) -> bool {
        self.effect() == Some(Effect::Helped)
    }

    /// Its effect, if it was judged.
    fn effect(&self) -> Option<Effect> {
        match &self.outcome {
            Outcome::Judged(judged) => Some(judged.effect),
            Outcome::Refused(_) => None,
        }
    }
}
