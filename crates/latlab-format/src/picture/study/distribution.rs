//! Distribution function and density of samples.

use super::super::axis::{at_least_one, decade_above, decade_below, highest, real, round_above};
use super::super::histogram::bin_of;
use super::super::{Axis, Chart, ChartLine, Marks, Step, Stroke, Unit, round_step};
use super::Samples;
use crate::micro;
use latlab_core::histogram::Histogram;
use latlab_core::study::picture::Picture;
use latlab_core::time::Nanos;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the share of samples at or below each latency.
pub(super) fn cdf(picture: &Picture, samples: &[Samples]) -> Chart {
    let x = values(picture, samples);
    let lines = samples.iter().map(|one| line(one, shares(&one.histogram, &x))).collect();
    Chart {
        name: picture.name.clone(),
        title: String::new(),
        about: "Share of samples at or below each latency; further up and left is better."
            .to_owned(),
        x,
        y: share_axis("share of samples at or below", 1.0),
        step: Step::End,
        lines,
        marks: Marks::default(),
    }
}

/// Returns the share of samples in each of many bins, which are equally wide on the axis.
pub(super) fn density(picture: &Picture, samples: &[Samples]) -> Chart {
    let x = values(picture, samples);
    let lines: Vec<ChartLine> =
        samples.iter().map(|one| line(one, bins(&one.histogram, &x))).collect();
    let top = round_above(highest_share(&lines));
    Chart {
        name: picture.name.clone(),
        title: String::new(),
        about: "Share of samples per bin; all bins have the same width on this axis.".to_owned(),
        x,
        y: share_axis("share of samples per bin", top.min(1.0)),
        step: Step::End,
        lines,
        marks: Marks::default(),
    }
}

fn line(one: &Samples, points: Vec<(f64, f64)>) -> ChartLine {
    ChartLine { name: one.name.clone(), colour: one.colour, stroke: Stroke::Solid, points }
}

/// Returns the highest share, at least 0.001.
fn highest_share(lines: &[ChartLine]) -> f64 {
    let all = lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    all.fold(0.001, f64::max).min(highest(lines))
}

fn share_axis(label: &str, max: f64) -> Axis {
    let label = label.to_owned();
    Axis { label, unit: Unit::Share, log: false, min: 0.0, max, named: Vec::new() }
}

/// Returns the axis of the samples. If few outliers would flatten everything else on a linear axis,
/// they are off scale, and the label has the maximum.
fn values(picture: &Picture, samples: &[Samples]) -> Axis {
    let all = || samples.iter().map(|one| &one.histogram);
    let least = at_least_one(all().map(Histogram::min).min().unwrap_or_default());
    let longest = all().map(Histogram::max).max().unwrap_or_default();
    let most = at_least_one(longest);
    let (log, named) = (picture.log, Vec::new());
    let mut label = super::label(samples);
    if log {
        let (min, max) = (decade_below(least), decade_above(most));
        return Axis { label, unit: Unit::Nanos, log, min, max, named };
    }
    let usual = at_least_one(all().map(|one| one.quantile(0.999)).max().unwrap_or_default());
    let mut top = most;
    if most > 3.0 * usual {
        top = 1.5 * usual;
        let _ = write!(label, " (max {}, off scale)", micro(longest));
    }
    // An axis of close values that are far from 0 does not start at 0.
    let (mut min, mut max) = (0.0, round_above(top));
    if least > 0.7 * top && least < top {
        let step = round_step(top - least);
        (min, max) = ((least / step).floor() * step, (top / step + 0.02).ceil() * step);
    }
    Axis { label, unit: Unit::Nanos, log, min, max, named }
}

/// Returns latencies and the shares of samples at or below them, from 0, without points that are
/// indistinguishable from their neighbours.
fn shares(histogram: &Histogram, x: &Axis) -> Vec<(f64, f64)> {
    let near = |one: f64, other: f64| {
        if x.log {
            (one / other).log10() < 0.002 * (x.max / x.min).log10()
        } else {
            one - other < 0.002 * (x.max - x.min)
        }
    };
    let all = real(histogram.count());
    let mut points = vec![(at_least_one(histogram.min()).max(x.min), 0.0)];
    let (mut below, mut last) = (0, None);
    for bucket in histogram.buckets().filter(|bucket| real(bucket.from.0) <= x.max) {
        below += bucket.count;
        let latency = Nanos(bucket.to.0.saturating_sub(1)).min(histogram.max()).max(bucket.from);
        let place = at_least_one(latency).clamp(points[0].0, x.max);
        let point = (place, real(below) / all);
        let (x_kept, share_kept) = points[points.len() - 1];
        last = Some(point);
        if !near(point.0, x_kept) || point.1 - share_kept > 0.004 {
            points.push(point);
            last = None;
        }
    }
    points.extend(last);
    // The share holds for all greater latencies, up to the border.
    points.push((x.max, real(below) / all));
    points
}

/// Returns start and share of each bin with samples; each group of bins begins and ends at 0.
fn bins(histogram: &Histogram, x: &Axis) -> Vec<(f64, f64)> {
    let width = bin_width(histogram, x);
    let mut bins: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for bucket in histogram.buckets() {
        let (start, end) = if x.log {
            bin_of(bucket.from)
        } else {
            (bucket.from.0 / width * width, bucket.from.0 / width * width + width)
        };
        bins.entry(start).or_insert((end, 0)).1 += bucket.count;
    }
    let all = real(histogram.count());
    let first = bins.first_key_value();
    let mut points: Vec<(f64, f64)> =
        first.map(|(start, _)| (real(*start).max(x.min), 0.0)).into_iter().collect();
    for (start, (end, count)) in bins.iter().filter(|(start, _)| real(**start) <= x.max) {
        points.push((real(*start).max(x.min), real(*count) / all));
        if !bins.contains_key(end) {
            points.push((real(*end).min(x.max), 0.0));
        }
    }
    points
}

/// Returns the width of the bins on a linear axis, in nanoseconds: at least the width of a bucket.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a width is a whole number of nanoseconds below 2⁶⁴"
)]
fn bin_width(histogram: &Histogram, x: &Axis) -> u64 {
    let wanted = round_step(x.max - x.min) / 10.0;
    let widest = histogram.buckets().filter(|bucket| real(bucket.from.0) <= x.max);
    let widest = widest.map(|bucket| bucket.to.0 - bucket.from.0).max().unwrap_or(1);
    (wanted.ceil() as u64).max(widest).max(1)
}
