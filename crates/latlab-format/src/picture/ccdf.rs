//! Complementary cumulative distribution of latencies (CCDF).

use super::axis::{at_least_one, decade_below, lowest};
use super::curve::{Curve, latency_axis};
use super::{Axis, Chart, ChartLine, Marks, Step, Stroke, Unit};
use latlab_core::histogram::Histogram;
use latlab_core::record::Series;

/// The highest lower end of the axis of shares: where all samples are alike, each share is 1.
const HIGHEST_END: f64 = 0.1;

/// Returns the chart: the share of samples at or above a latency, both logarithmic.
pub(super) fn chart(curves: &[Curve<'_>]) -> Chart {
    let mut lines = Vec::new();
    for curve in curves {
        lines.push(curve.line(shares(&curve.histogram)));
        if let Some(corrected) = corrected(curve.series, &curve.histogram) {
            lines.push(ChartLine {
                name: format!("{} · corrected", curve.name),
                stroke: Stroke::Dashed,
                ..curve.line(shares(&corrected))
            });
        }
    }
    let mut about =
        "Share of samples at or above each latency; further down and left is better.".to_owned();
    if lines.iter().any(|line| line.stroke == Stroke::Dashed) {
        about += " Dashed: corrected for missed periods.";
    }
    Chart {
        name: "ccdf".to_owned(),
        title: "Complementary cumulative distribution (CCDF)".to_owned(),
        about,
        x: latency_axis(curves),
        y: Axis {
            label: "share of samples at or above".to_owned(),
            unit: Unit::Share,
            log: true,
            min: decade_below(lowest(&lines)).min(HIGHEST_END),
            max: 1.0,
            named: Vec::new(),
        },
        step: Step::Start,
        lines,
        marks: Marks::default(),
    }
}

/// Returns the distribution corrected for missed periods; none if no period was missed.
pub fn corrected(series: &Series, histogram: &Histogram) -> Option<Histogram> {
    let interval = series.interval?;
    (series.counts.missed > 0).then(|| histogram.corrected(interval))
}

/// Returns latencies and the shares of samples at or above them, without points that are
/// indistinguishable from their neighbours.
fn shares(histogram: &Histogram) -> Vec<(f64, f64)> {
    const VISIBLE: f64 = 1.02;
    let above = histogram.above();
    let last = above.len() - 1;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (n, (latency, share)) in above.into_iter().enumerate() {
        let x = at_least_one(latency);
        let seen = |(kept_x, kept_share): &(f64, f64)| {
            x / kept_x > VISIBLE || kept_share / share > VISIBLE
        };
        if n == last || points.last().is_none_or(seen) {
            points.push((x, share));
        }
    }
    points
}
