//! What the pictures of a report show: records in, lines of numbers out. The page and the SVG
//! files draw the same lines, so that no number is reduced twice.

use super::series_name;
use latlab_core::histogram::Histogram;
use latlab_core::record::{Record, Series};
use latlab_core::time::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

#[cfg(test)]
pub(crate) mod tests;

/// A record and what to call it among others.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) record: Record,
}

/// One picture: lines over two axes.
#[derive(Debug, Serialize)]
pub(crate) struct Chart {
    /// The name of its file and of its place in the page.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// How to read it, in a sentence or two.
    pub(crate) about: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) step: Step,
    pub(crate) lines: Vec<Line>,
}

/// How a line gets from one point to the next: never aslant, as nothing was measured between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    /// Up or down at once, then along: the height of a point holds until it is reached.
    Start,
    /// Along, then up or down: the height of a point holds from it on.
    End,
}

#[derive(Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) unit: Unit,
    pub(crate) log: bool,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// What the numbers of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    /// Nanoseconds.
    Nanos,
    Second,
    Count,
    /// Of 1.
    Share,
}

#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    pub(crate) dashed: bool,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Told apart by most eyes, on white as on black.
const COLOURS: [&str; 8] =
    ["#3a78c9", "#e0812b", "#36a07a", "#d1495b", "#8d6cc4", "#a3793f", "#d070b0", "#7f8894"];

/// The bins of the histogram grow by 10^(1/40), 6 %, and hold whole nanoseconds.
const BINS_PER_DECADE: f64 = 40.0;

/// Where a logarithmic axis of counts ends, since it has no 0: an empty bin is drawn here.
const NO_SAMPLE: f64 = 0.5;

/// The three pictures of a report, or none where there is no sample.
pub(crate) fn charts(sources: &[Source]) -> Vec<Chart> {
    let curves = curves(sources);
    if curves.is_empty() {
        return Vec::new();
    }
    vec![histogram(&curves), ccdf(&curves), timeline(&curves)]
}

/// A series with its histogram at hand and all that its lines have in common.
struct Curve<'a> {
    name: String,
    colour: &'static str,
    series: &'a Series,
    histogram: Histogram,
}

impl Curve<'_> {
    fn line(&self, points: Vec<(f64, f64)>) -> Line {
        Line { name: self.name.clone(), colour: self.colour, dashed: false, points }
    }
}

/// The series that have samples.
fn curves(sources: &[Source]) -> Vec<Curve<'_>> {
    let series = sources.iter().flat_map(|source| &source.record.series);
    let measured = series.zip(names(sources));
    measured
        .filter(|(series, _)| series.counts.recorded > 0)
        .zip(COLOURS.iter().cycle())
        .map(|((series, name), colour)| Curve {
            name,
            colour,
            series,
            histogram: distribution(series),
        })
        .collect()
}

/// The distribution of a series that was read from a record.
pub(crate) fn distribution(series: &Series) -> Histogram {
    series.histogram().expect("a record's histograms were read before")
}

/// A name for each series of all sources, in order. What is the same everywhere is left out,
/// except the probe and the CPU.
pub(crate) fn names(sources: &[Source]) -> Vec<String> {
    let all: Vec<(&Source, &Series)> = sources
        .iter()
        .flat_map(|source| source.record.series.iter().map(move |s| (source, s)))
        .collect();
    let loads_differ = all.windows(2).any(|w| w[0].1.load != w[1].1.load);
    let profiles_differ = all.windows(2).any(|w| w[0].1.profile != w[1].1.profile);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let name = |(source, series): (&Source, &Series)| {
        let mut parts = Vec::new();
        if sources.len() > 1 {
            parts.push(source.name.clone());
        }
        parts.push(series_name(&source.record, series));
        parts.push(format!("CPU {}", series.cpu));
        if loads_differ {
            parts.push(load(series));
        }
        if profiles_differ {
            parts.extend(series.profile.clone());
        }
        // XML has no place for control characters, however they are written.
        let unfit = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
        let name = parts.join(" · ").replace(unfit, " ");
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name} ({times})") }
    };
    all.into_iter().map(name).collect()
}

/// What ran beside a series, in words.
pub(crate) fn load(series: &Series) -> String {
    if series.load.is_empty() { "no load".to_owned() } else { series.load.join(" + ") }
}

fn histogram(curves: &[Curve<'_>]) -> Chart {
    let lines: Vec<Line> = curves.iter().map(|curve| curve.line(bins(&curve.histogram))).collect();
    let mut about = "Each step counts the samples of one bin. All bins are 6 % wide, but at least \
                     a nanosecond, so they look alike on this axis."
        .to_owned();
    if curves.iter().any(|curve| curve.histogram.min() == Nanos(0)) {
        about += " Samples of 0 ns stand at 1 ns.";
    }
    Chart {
        name: "histogram",
        title: "How often each latency occurred",
        about,
        x: latency_axis(curves),
        y: Axis {
            label: "samples per bin",
            unit: Unit::Count,
            log: true,
            min: NO_SAMPLE,
            max: decade_above(highest(&lines)),
        },
        step: Step::End,
        lines,
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
fn bin_of(latency: Nanos) -> (u64, u64) {
    let bin = (at_least_one(latency).log10() * BINS_PER_DECADE).floor();
    let start = |bin: f64| 10f64.powf(bin / BINS_PER_DECADE).ceil() as u64;
    (start(bin), start(bin + 1.0))
}

fn ccdf(curves: &[Curve<'_>]) -> Chart {
    let mut lines = Vec::new();
    for curve in curves {
        lines.push(curve.line(shares(&curve.histogram)));
        if let Some(corrected) = corrected(curve.series, &curve.histogram) {
            lines.push(Line {
                name: format!("{} · corrected", curve.name),
                dashed: true,
                ..curve.line(shares(&corrected))
            });
        }
    }
    let mut about = "How large a share of the samples took this long or longer: the further down \
                     and left, the better."
        .to_owned();
    if lines.iter().any(|line| line.dashed) {
        about += " Dashed: as it would be, had every missed period been sampled.";
    }
    Chart {
        name: "ccdf",
        title: "How rare each latency is",
        about,
        x: latency_axis(curves),
        y: Axis {
            label: "share of samples at or above",
            unit: Unit::Share,
            log: true,
            min: decade_below(lowest(&lines)),
            max: 1.0,
        },
        step: Step::Start,
        lines,
    }
}

/// The distribution of a series corrected for the periods it missed, if it missed any.
pub(crate) fn corrected(series: &Series, histogram: &Histogram) -> Option<Histogram> {
    let interval = series.interval?;
    (series.counts.missed > 0).then(|| histogram.corrected(interval))
}

/// Latency and share of samples at or above it; without the points that no eye could tell from
/// their neighbours.
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

fn timeline(curves: &[Curve<'_>]) -> Chart {
    let lines: Vec<Line> = curves
        .iter()
        .map(|curve| {
            let points = curve.series.timeline.points();
            let sampled = points.filter(|(_, worst)| *worst > Nanos(0));
            curve.line(sampled.map(|(at, worst)| (at.as_secs_f64(), at_least_one(worst))).collect())
        })
        .collect();
    let ends = curves.iter().filter_map(|curve| {
        let (last, _) = curve.series.timeline.points().last()?;
        Some((last + curve.series.timeline.width()).as_secs_f64())
    });
    Chart {
        name: "timeline",
        title: "When it was late",
        about:
            "The worst latency of each stretch of time; a run is cut into at most 1024 of them. \
                A stretch without samples shows the one before."
                .to_owned(),
        x: Axis {
            label: "time since counting began",
            unit: Unit::Second,
            log: false,
            min: 0.0,
            max: ends.fold(0.001, f64::max),
        },
        y: Axis {
            label: "worst latency",
            unit: Unit::Nanos,
            log: true,
            min: decade_below(lowest(&lines)),
            max: decade_above(highest(&lines)),
        },
        step: Step::End,
        lines,
    }
}

fn latency_axis(curves: &[Curve<'_>]) -> Axis {
    let least = curves.iter().map(|c| c.histogram.min()).min();
    let most = curves.iter().map(|c| c.histogram.max()).max();
    Axis {
        label: "latency",
        unit: Unit::Nanos,
        log: true,
        min: decade_below(at_least_one(least.unwrap_or_default())),
        max: decade_above(at_least_one(most.unwrap_or_default())),
    }
}

fn highest(lines: &[Line]) -> f64 {
    heights(lines).fold(1.0, f64::max)
}

fn lowest(lines: &[Line]) -> f64 {
    heights(lines).reduce(f64::min).unwrap_or(1.0)
}

fn heights(lines: &[Line]) -> impl Iterator<Item = f64> + '_ {
    lines.iter().flat_map(|line| &line.points).map(|p| p.1)
}

fn decade_below(value: f64) -> f64 {
    10f64.powf(value.log10().floor())
}

/// The next power of ten: a value that is one itself would lie on the rim.
fn decade_above(value: f64) -> f64 {
    10f64.powf(value.log10().floor() + 1.0)
}

/// A logarithmic axis has no place for 0.
fn at_least_one(latency: Nanos) -> f64 {
    real(latency.0.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "a picture is made of pixels")]
fn real(n: u64) -> f64 {
    n as f64
}
