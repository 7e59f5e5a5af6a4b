//! Latency histogram.

use super::axis::{at_least_one, decade_above, highest, real};
use super::curve::{Curve, latency_axis};
use super::{Axis, Chart, ChartLine, Marks, Step, Unit};
use latlab_core::histogram::Histogram;
use latlab_core::time::Nanos;
use std::collections::BTreeMap;

/// Bins grow by 10^(1/40), 6 %, and hold whole nanoseconds.
const BINS_PER_DECADE: f64 = 40.0;

/// Lower end of the logarithmic axis of counts, where empty bins are drawn.
const NO_SAMPLE: f64 = 0.5;

/// Returns the chart: samples per bin over latency, both logarithmic.
pub(super) fn chart(curves: &[Curve<'_>]) -> Chart {
    let lines: Vec<ChartLine> =
        curves.iter().map(|curve| curve.line(bins(&curve.histogram))).collect();
    let mut about = "Samples per bin. Log-spaced bins (6 %, at least 1 ns).".to_owned();
    if curves.iter().any(|curve| curve.histogram.min() == Nanos(0)) {
        about += " Samples of 0 ns are drawn at 1 ns.";
    }
    Chart {
        name: "histogram".to_owned(),
        title: "Latency histogram".to_owned(),
        about,
        x: latency_axis(curves),
        y: Axis {
            label: "samples per bin".to_owned(),
            unit: Unit::Count,
            log: true,
            min: NO_SAMPLE,
            max: decade_above(highest(&lines)),
            named: Vec::new(),
        },
        step: Step::End,
        lines,
        marks: Marks::default(),
    }
}

/// Returns start and count of each bin with samples; each group of bins begins and ends at the
/// baseline.
fn bins(histogram: &Histogram) -> Vec<(f64, f64)> {
    let mut bins: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for bucket in histogram.buckets() {
        let (start, end) = bin_of(bucket.from);
        bins.entry(start).or_insert((end, 0)).1 += bucket.count;
    }
    let first = bins.first_key_value();
    let mut points: Vec<(f64, f64)> =
        first.map(|(start, _)| (real(*start), NO_SAMPLE)).into_iter().collect();
    for (start, (end, count)) in &bins {
        points.push((real(*start), real(*count)));
        if !bins.contains_key(end) {
            points.push((real(*end), NO_SAMPLE));
        }
    }
    points
}

/// Returns the first nanosecond of the bin of a latency, and the first of the next bin.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bin starts at a whole number of nanoseconds below 2⁶⁴"
)]
pub(super) fn bin_of(latency: Nanos) -> (u64, u64) {
    let bin = (at_least_one(latency).log10() * BINS_PER_DECADE).floor();
    let start = |bin: f64| 10f64.powf(bin / BINS_PER_DECADE).ceil() as u64;
    (start(bin), start(bin + 1.0))
}
