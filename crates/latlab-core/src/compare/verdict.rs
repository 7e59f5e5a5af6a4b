//! Verdict on one figure: no difference, faster, slower, mixed or inconclusive.

use crate::interval::Interval;
use crate::time::Nanos;
use serde::Serialize;

/// Significance level: at most this share of comparisons without a difference finds one.
pub const LEVEL: f64 = 0.05;

/// Whether the latencies of the second side differ from those of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// No difference was found; the interval says how large one may be.
    #[serde(rename = "no difference")]
    Same,
    /// The second side has lower latencies.
    #[serde(rename = "faster")]
    Faster,
    /// The second side has higher latencies.
    #[serde(rename = "slower")]
    Slower,
    /// Some quantiles are faster, others slower.
    #[serde(rename = "mixed")]
    Mixed,
    /// Too few runs or samples.
    #[serde(rename = "inconclusive")]
    Inconclusive,
}

impl Verdict {
    /// Returns the word used in tables and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Same => "no difference",
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Mixed => "mixed",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// The verdict on one figure, and the intervals behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// 95 % confidence interval of the first side; none where the difference is exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<Interval<Nanos>>,
    /// 95 % confidence interval of the second side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<Interval<Nanos>>,
    /// 95 % confidence interval of the ratio of the second side to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval<f64>>,
    /// The probability that any figure judged together with this one differs as much by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}
