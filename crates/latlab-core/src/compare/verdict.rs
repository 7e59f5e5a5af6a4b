//! What is said of each quantile, and of a latency as a whole: the same, faster, slower, or not known.

use super::bootstrap::{self, Interval};
use super::chance::{self, Values};
use super::latency::Latency;
use super::runs::{Design, Method};
use crate::histogram::Histogram;
use crate::time::Nanos;
use serde::Serialize;

/// Verdicts are wrong by chance in this share of comparisons at most.
pub const LEVEL: f64 = 0.05;

/// At least this many samples that were recorded are above a quantile of which anything is said: of
/// fewer it is little more than a maximum.
pub(super) const BEYOND: f64 = 10.0;

/// Whether the second side is as late as the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// No difference was found; how large one may be is what the interval says.
    #[serde(rename = "no difference")]
    Same,
    /// The second is less late.
    #[serde(rename = "faster")]
    Faster,
    /// The second is later.
    #[serde(rename = "slower")]
    Slower,
    /// Some quantiles are faster, others slower.
    #[serde(rename = "faster and slower")]
    Both,
    /// It can't be told.
    #[serde(rename = "not known")]
    Unknown,
}

impl Verdict {
    /// It in words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Same => "no difference",
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Both => "faster and slower",
            Verdict::Unknown => "not known",
        }
    }
}

/// What was judged of one figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The interval of 95 % of the first side; none where the difference is exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<Interval<Nanos>>,
    /// That of the second side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<Interval<Nanos>>,
    /// That of the second by the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval<f64>>,
    /// The probability that anything judged here would differ as much by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
}

/// One latency of both sides, run by run, corrected where periods were missed.
pub(super) struct Runs {
    pub(super) a: Vec<Histogram>,
    pub(super) b: Vec<Histogram>,
    /// What was recorded in those of the first side, then of the second, without what correcting adds.
    pub(super) recorded: Vec<Histogram>,
}

/// Judges the quantiles of all latencies together. How many were judged.
pub(super) fn judge(latencies: &mut [(Latency, Option<Runs>)], design: &Design) -> usize {
    if design.method == Method::Exact {
        return latencies.iter_mut().map(|(latency, _)| exact(latency)).sum();
    }
    if design.method == Method::None {
        return 0;
    }
    // Of which latency, and which of its rows.
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut values: Vec<Values> = Vec::new();
    for (nth, (latency, runs)) in latencies.iter().enumerate() {
        let Some(runs) = runs else { continue };
        for (row, quantile) in latency.to_be_judged() {
            if runs.have_beyond(quantile) {
                places.push((nth, row));
                values.push(runs.logarithms(quantile));
            }
        }
    }
    let probabilities = chance::probabilities(&values, design.method);
    for (((nth, row), values), p) in places.iter().zip(&values).zip(probabilities) {
        let (ratio, interval) = match design.method {
            Method::Paired => bootstrap::of_pairs(&values.a, &values.b),
            _ => bootstrap::of_sets(&values.a, &values.b),
        };
        let interval = Interval { low: interval.low.exp(), high: interval.high.exp() };
        let verdict = match p <= LEVEL {
            true if interval.low > 1.0 => Verdict::Slower,
            true if interval.high < 1.0 => Verdict::Faster,
            _ => Verdict::Same,
        };
        let row = &mut latencies[*nth].0.rows[*row];
        row.ratio = Some(ratio.exp());
        row.judged = Some(Judged { a: None, b: None, ratio: Some(interval), p: Some(p), verdict });
    }
    places.len()
}

/// The intervals of what was judged, of each side by itself.
pub(super) fn estimate(latencies: &mut [(Latency, Option<Runs>)]) {
    for (latency, runs) in latencies {
        let judged: Vec<(usize, f64)> = latency.to_be_judged();
        let judged: Vec<_> =
            judged.into_iter().filter(|(row, _)| latency.rows[*row].judged.is_some()).collect();
        let (Some(runs), false) = (runs, judged.is_empty()) else { continue };
        let quantiles: Vec<f64> = judged.iter().map(|(_, quantile)| *quantile).collect();
        let a = bootstrap::quantiles(&runs.a, &quantiles);
        let b = bootstrap::quantiles(&runs.b, &quantiles);
        for (((row, _), a), b) in judged.iter().zip(a).zip(b) {
            if let Some(judged) = &mut latency.rows[*row].judged {
                (judged.a, judged.b) = (Some(a), Some(b));
            }
        }
    }
}

/// In a time without chance a difference is one. How many were judged.
fn exact(latency: &mut Latency) -> usize {
    if latency.recorded.0 == 0 || latency.recorded.1 == 0 {
        "one of the two has no sample".clone_into(&mut latency.unknown);
        return 0;
    }
    let rows = latency.to_be_judged();
    for (row, _) in &rows {
        let row = &mut latency.rows[*row];
        let verdict = match row.b.cmp(&row.a) {
            std::cmp::Ordering::Less => Verdict::Faster,
            std::cmp::Ordering::Equal => Verdict::Same,
            std::cmp::Ordering::Greater => Verdict::Slower,
        };
        row.judged = Some(Judged { a: None, b: None, ratio: None, p: None, verdict });
    }
    rows.len()
}

impl Runs {
    /// Whether each run has enough samples above this quantile. Those that correcting adds do not
    /// count: all of a long one come from a single sample.
    #[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
    fn have_beyond(&self, quantile: f64) -> bool {
        self.a.iter().chain(&self.b).zip(&self.recorded).all(|(run, recorded)| {
            let from = run.quantile(quantile);
            let late = recorded.buckets().filter(|bucket| bucket.to > from).map(|b| b.count);
            let beyond = recorded.count() as f64 * (1.0 - quantile) + 1e-6;
            beyond.min(late.sum::<u64>() as f64) >= BEYOND
        })
    }

    /// Ratios are compared, so that twice as late counts as much as half as late. 0 ns counts as 1.
    #[expect(clippy::cast_precision_loss, reason = "a latency of 2^53 ns is 104 days long")]
    fn logarithms(&self, quantile: f64) -> Values {
        let of = |runs: &[Histogram]| {
            runs.iter().map(|run| (run.quantile(quantile).0.max(1) as f64).ln()).collect()
        };
        Values { a: of(&self.a), b: of(&self.b) }
    }
}

impl Latency {
    /// The verdict on all its quantiles together.
    pub fn verdict(&self) -> Verdict {
        let all: Vec<Verdict> =
            self.rows.iter().filter_map(|row| row.judged.as_ref()).map(|j| j.verdict).collect();
        let has = |verdict| all.contains(&verdict);
        match (has(Verdict::Faster), has(Verdict::Slower)) {
            _ if all.is_empty() => Verdict::Unknown,
            (false, false) => Verdict::Same,
            (true, false) => Verdict::Faster,
            (false, true) => Verdict::Slower,
            (true, true) => Verdict::Both,
        }
    }

    /// The verdict with its figures, or the reason why there is none, in a sentence's part.
    pub fn sentence(&self) -> String {
        let mut differ = Vec::new();
        let mut same = Vec::new();
        for row in &self.rows {
            let Some(judged) = &row.judged else { continue };
            if judged.verdict == Verdict::Same {
                same.push(row.name.clone());
                continue;
            }
            let by = row.ratio.map_or_else(
                || format!("{} to {}", row.a, row.b),
                |ratio| {
                    let interval =
                        judged.ratio.map(|i| format!(" ({} to {})", by(i.low), by(i.high)));
                    format!("{}{}", by(ratio), interval.unwrap_or_default())
                },
            );
            let word = if self.verdict() == Verdict::Both { judged.verdict.word() } else { "" };
            differ.push(format!("{} {by} {word}", row.name).trim_end().to_owned());
        }
        let exact = self.rows.iter().filter_map(|row| row.judged.as_ref()).all(|j| j.p.is_none());
        let alike = if exact { "the same" } else { "no difference found" };
        match self.verdict() {
            Verdict::Unknown => format!("not known: {}", self.unknown),
            Verdict::Same => format!("{alike} at {}", same.join(", ")),
            verdict => {
                let rest = if same.is_empty() {
                    String::new()
                } else {
                    format!("; {alike} at {}", same.join(", "))
                };
                format!("{}: {}{rest}", verdict.word(), differ.join(", "))
            }
        }
    }
}

/// A ratio as what is added or taken away; a large one as how many times.
pub fn by(ratio: f64) -> String {
    if ratio >= 2.0 {
        return format!("×{ratio:.3}");
    }
    let percent = (ratio - 1.0) * 100.0;
    let digits = if percent.abs() < 0.995 { 2 } else { usize::from(percent.abs() < 9.95) };
    let text = format!("{percent:+.digits$}");
    format!("{} %", text.replace('-', "−"))
}
