//! Judging the quantiles of all latencies together: which of them differ between the two sides.

use super::bootstrap;
use super::latency::{Latency, RunHistograms, beyond};
use super::randomization::{self, Values};
use super::runs::{Design, Method};
use super::verdict::{Judged, Verdict};
use crate::histogram::Histogram;
use crate::interval::Interval;

/// Minimum number of recorded samples above a judged quantile; with fewer it is hardly more than a
/// maximum.
pub(super) const BEYOND: f64 = 10.0;

/// Lower quantiles are no measure of lateness.
const LATE: f64 = 0.9;

/// The figures of a latency that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judging {
    /// All quantiles with enough samples.
    Quantiles,
    /// How late it gets: the highest quantile with enough samples, from p90 on, and the worst sample.
    /// All runs must have the same length, because maxima grow with the number of samples.
    Lateness,
}

/// Judges the figures of all latencies together, and returns how many were judged.
pub(super) fn judge(
    latencies: &mut [(Latency, Option<RunHistograms>)],
    design: &Design,
    judging: Judging,
) -> usize {
    if design.method == Method::Exact {
        let judged = |(latency, runs): &mut (Latency, Option<RunHistograms>)| {
            let rows = judging.exact_rows(latency, runs.as_ref());
            exact(latency, &rows)
        };
        return latencies.iter_mut().map(judged).sum();
    }
    if design.method == Method::None {
        return 0;
    }
    // Indices of the latency and of its row.
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut values: Vec<Values> = Vec::new();
    for (nth, (latency, runs)) in latencies.iter().enumerate() {
        let Some(runs) = runs else { continue };
        for (row, quantile) in judging.rows(latency, runs) {
            places.push((nth, row));
            values.push(runs.logarithms(quantile));
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
fn exact(latency: &mut Latency, rows: &[usize]) -> usize {
    if latency.recorded.0 == 0 || latency.recorded.1 == 0 {
        "one side has no samples".clone_into(&mut latency.unknown);
        return 0;
    }
    for row in rows {
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

impl Judging {
    /// Returns how many times as long the runs have to be before a figure of any latency has enough
    /// samples in each run, infinite where some run has no sample; none where one has enough.
    pub(super) fn too_short(self, latencies: &[(Latency, Option<RunHistograms>)]) -> Option<f64> {
        let known = || latencies.iter().filter_map(|(one, runs)| Some((one, runs.as_ref()?)));
        if known().any(|(latency, runs)| !self.rows(latency, runs).is_empty()) {
            return None;
        }
        let quantiles = |latency: &Latency| latency.judged_rows().into_iter();
        let fewest = known().flat_map(|(latency, runs)| {
            quantiles(latency).map(|(_, quantile)| runs.fewest_beyond(quantile))
        });
        Some(BEYOND / fewest.fold(0.0, f64::max))
    }

    /// Returns the indices of the judged rows and their quantiles. The quantile of a maximum is 1.
    fn rows(self, latency: &Latency, runs: &RunHistograms) -> Vec<(usize, f64)> {
        let rows = latency.judged_rows().into_iter();
        let mut rows: Vec<_> = rows.filter(|(_, q)| runs.have_beyond(*q)).collect();
        if self == Judging::Lateness {
            rows.retain(|(_, quantile)| *quantile >= LATE);
            rows.drain(..rows.len().saturating_sub(1));
            rows.extend(
                latency.rows.iter().position(|row| row.name == "max").map(|row| (row, 1.0)),
            );
        }
        rows
    }

    /// Returns the indices of the judged rows of exact times, for which a single sample is enough.
    fn exact_rows(self, latency: &Latency, runs: Option<&RunHistograms>) -> Vec<usize> {
        let rows = match (self, runs) {
            (Judging::Lateness, Some(runs)) => self.rows(latency, runs),
            (Judging::Lateness, None) => Vec::new(),
            (Judging::Quantiles, _) => latency.judged_rows(),
        };
        rows.into_iter().map(|(row, _)| row).collect()
    }
}

impl RunHistograms {
    /// Whether each run has enough recorded samples above this quantile.
    fn have_beyond(&self, quantile: f64) -> bool {
        self.fewest_beyond(quantile) >= BEYOND
    }

    /// Returns the number of recorded samples above this quantile, of the run that has fewest.
    fn fewest_beyond(&self, quantile: f64) -> f64 {
        let runs = self.a.iter().chain(&self.b).zip(&self.recorded);
        runs.map(|(run, recorded)| beyond(run, recorded, quantile)).fold(f64::INFINITY, f64::min)
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
