//! Judging the quantiles of all latencies together: which of them differ between the two sides.

use super::bootstrap::{self, Interval};
use super::latency::{Latency, RunHistograms};
use super::randomization::{self, Values};
use super::runs::{Design, Method};
use super::verdict::{Judged, Verdict};
use crate::histogram::Histogram;

/// Minimum number of recorded samples above a judged quantile; with fewer it is hardly more than a
/// maximum.
pub(super) const BEYOND: f64 = 10.0;

/// Judges the quantiles of all latencies together, and returns how many were judged.
pub(super) fn judge(latencies: &mut [(Latency, Option<RunHistograms>)], design: &Design) -> usize {
    if design.method == Method::Exact {
        return latencies.iter_mut().map(|(latency, _)| exact(latency)).sum();
    }
    if design.method == Method::None {
        return 0;
    }
    // Indices of the latency and of its row.
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut values: Vec<Values> = Vec::new();
    for (nth, (latency, runs)) in latencies.iter().enumerate() {
        let Some(runs) = runs else { continue };
        for (row, quantile) in latency.judged_rows() {
            if runs.have_beyond(quantile) {
                places.push((nth, row));
                values.push(runs.logarithms(quantile));
            }
        }
    }
    let probabilities = randomization::probabilities(&values, design.method);
    for (((nth, row), values), p) in places.iter().zip(&values).zip(probabilities) {
        let (ratio, interval) = match design.method {
            Method::Paired => bootstrap::paired_difference(&values.a, &values.b),
            _ => bootstrap::difference_of_medians(&values.a, &values.b),
        };
        let interval = Interval { low: interval.low.exp(), high: interval.high.exp() };
        let verdict = match p <= design.level {
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

/// Adds the intervals of each side to the figures that were judged.
pub(super) fn estimate(latencies: &mut [(Latency, Option<RunHistograms>)]) {
    for (latency, runs) in latencies {
        let judged: Vec<(usize, f64)> = latency.judged_rows();
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

/// Judges exactly repeatable times, in which any difference is real; returns how many were judged.
fn exact(latency: &mut Latency) -> usize {
    if latency.recorded.0 == 0 || latency.recorded.1 == 0 {
        "one side has no samples".clone_into(&mut latency.unknown);
        return 0;
    }
    let rows = latency.judged_rows();
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

impl RunHistograms {
    /// Whether each run has enough samples above this quantile. Samples added by the correction do
    /// not count: a single long sample adds many.
    #[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
    fn have_beyond(&self, quantile: f64) -> bool {
        self.a.iter().chain(&self.b).zip(&self.recorded).all(|(run, recorded)| {
            let from = run.quantile(quantile);
            let late = recorded.buckets().filter(|bucket| bucket.to > from).map(|b| b.count);
            let beyond = recorded.count() as f64 * (1.0 - quantile) + 1e-6;
            beyond.min(late.sum::<u64>() as f64) >= BEYOND
        })
    }

    /// Returns the logarithms of a quantile, so that ratios are compared: twice the latency counts
    /// as much as half of it. 0 ns counts as 1 ns.
    #[expect(clippy::cast_precision_loss, reason = "a latency of 2^53 ns is 104 days long")]
    fn logarithms(&self, quantile: f64) -> Values {
        let of = |runs: &[Histogram]| {
            runs.iter().map(|run| (run.quantile(quantile).0.max(1) as f64).ln()).collect()
        };
        Values { a: of(&self.a), b: of(&self.b) }
    }
}
