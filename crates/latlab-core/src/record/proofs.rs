//! Remedies that were tried against the causes of late wake-ups, as records keep them.

use super::remedy::Remedy;
use crate::interval::Interval;
use crate::time::Nanos;
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

/// The effect of a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Wake-ups were less late.
    Helped,
    /// No effect worth a change was shown.
    NoneShown,
    /// Wake-ups were later.
    Harmed,
    /// One figure was better, another worse.
    Mixed,
    /// There were too few runs to tell.
    Unknown,
}

/// A judged remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The effect.
    pub effect: Effect,
    /// The figures that it was judged by: of each latency the worst, and the highest quantile with
    /// enough samples.
    pub figures: Vec<JudgedFigure>,
}

/// One figure without and with the remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedFigure {
    /// The probe. If it measures several latencies, also the end of this one
    /// (`realfeel.read-returned`).
    pub probe: String,
    /// `worst`, or a quantile as `p99`.
    pub name: String,
    /// Of all runs without the remedy together.
    pub without: Nanos,
    /// Of all runs with the remedy together.
    pub with: Nanos,
    /// The ratio of with to without: for pairs the median of their ratios, for other runs the ratio
    /// of the medians.
    pub ratio: f64,
    /// Its 95 % confidence interval; none where time is exactly repeatable and runs do not differ.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval: Option<Interval<f64>>,
    /// Probability that any of the figures differs as much by chance; none where there is no chance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p: Option<f64>,
    /// Whether the difference is real and large enough to matter: `Helped`, `Harmed` or
    /// `NoneShown`.
    pub effect: Effect,
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
    pub(crate) fn effect(&self) -> Option<Effect> {
        match &self.outcome {
            Outcome::Judged(judged) => Some(judged.effect),
            Outcome::Refused(_) => None,
        }
    }
}
