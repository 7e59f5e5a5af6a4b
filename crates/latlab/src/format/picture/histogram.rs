//! How often each latency occurred.

use super::axis::{at_least_one, decade_above, highest, real};
use super::curve::{Curve, latency_axis};
use super::{Axis, Chart, Line, Marks, Step, Unit};
use latlab_core::histogram::Histogram;
use latlab_core::time::Nanos;
use std::collections::BTreeMap;

/// The bins of the histogram grow by 10^(1/40), 6 %, and hold whole nanoseconds.
const BINS_PER_DECADE: f64 = 40.0;

/// Where a logarithmic axis of counts ends, since it has no 0: an empty bin is drawn here.
const NO_SAMPLE: f64 = 0.5;

/// Samples in each bin over the latency, both logarithmic.
pub(super) fn chart(curves: &[Curve<'_>]) -> Chart {
    let lines: Vec<Line> = curves.iter().map(|curve| curve.line(bins(&curve.histogram))).collect();
    let mut about = "Each step counts the samples of one bin. All bins are 6 % wide, but at least \
                     a nanosecond, so they look alike on this axis."
        .to_owned();
    if curves.iter().any(|curve| curve.histogram.min() == Nanos(0)) {
        about += " Samples of 0 ns stand at 1 ns.";
    }
    Chart {
        name: "histogram".to_owned(),
        title: "How often each latency occurred".to_owned(),
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

/// Start and count of each bin that holds samples, from and back to the ground around each group.
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

/// The first nanosecond of the bin of a latency, and that of the next bin.
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
