//! Series of all sources: names and colours of their lines, and their common axis.

use super::axis::{at_least_one, decade_above, decade_below};
use super::{Axis, COLOURS, ChartLine, NamedRecord, Stroke, Unit};
use crate::{numbered, printable, series_name, with_micro};
use latlab_core::histogram::Histogram;
use latlab_core::record::Series;

/// A series with its histogram, and what its lines have in common.
pub(super) struct Curve<'a> {
    pub(super) name: String,
    pub(super) colour: &'static str,
    pub(super) series: &'a Series,
    pub(super) histogram: Histogram,
}

impl Curve<'_> {
    pub(super) fn line(&self, points: Vec<(f64, f64)>) -> ChartLine {
        ChartLine { name: self.name.clone(), colour: self.colour, stroke: Stroke::Solid, points }
    }
}

/// Returns the series that have samples, without those of scans, which have their own charts.
pub(super) fn curves(sources: &[NamedRecord]) -> Vec<Curve<'_>> {
    let series = sources.iter().flat_map(|source| &source.record.series);
    let measured = series.zip(names(sources));
    measured
        .filter(|(series, _)| series.counts.recorded > 0 && !series.is_of_scan())
        .zip(COLOURS.iter().cycle())
        .map(|((series, name), colour)| Curve {
            name,
            colour,
            series,
            histogram: distribution(series),
        })
        .collect()
}

/// Returns the distribution of a series that was read from a record.
pub fn distribution(series: &Series) -> Histogram {
    series.histogram().expect("a record's histograms were read before")
}

/// Returns a name for each series of all sources, in order. Names contain probe and CPU, and
/// everything else only if it differs.
pub fn names(sources: &[NamedRecord]) -> Vec<String> {
    let all: Vec<(&NamedRecord, &Series)> = sources
        .iter()
        .flat_map(|source| source.record.series.iter().map(move |s| (source, s)))
        .collect();
    let loads_differ = all.windows(2).any(|w| w[0].1.load != w[1].1.load);
    // The name of a record identifies its kernel, unless the record has several.
    let profiles_differ = sources.iter().any(|source| {
        source.record.series.windows(2).any(|pair| pair[0].profile != pair[1].profile)
    });
    let name = |(source, series): (&NamedRecord, &Series)| {
        let mut parts = Vec::new();
        if sources.len() > 1 {
            parts.push(source.name.clone());
        }
        parts.push(with_micro(&series_name(&source.record, series)));
        parts.push(format!("CPU {}", series.cpus()));
        if loads_differ {
            parts.push(load(series));
        }
        if profiles_differ {
            parts.extend(series.profile.clone());
        }
        printable(&parts.join(" · "))
    };
    numbered(all.into_iter().map(name))
}

/// Returns the load of a series in words.
pub fn load(series: &Series) -> String {
    if series.load.is_empty() { "no load".to_owned() } else { series.load.join(" + ") }
}

/// Returns the axis that holds all latencies.
pub(super) fn latency_axis(curves: &[Curve<'_>]) -> Axis {
    let least = curves.iter().map(|c| c.histogram.min()).min();
    let most = curves.iter().map(|c| c.histogram.max()).max();
    Axis {
        label: "latency".to_owned(),
        unit: Unit::Nanos,
        log: true,
        min: decade_below(at_least_one(least.unwrap_or_default())),
        max: decade_above(at_least_one(most.unwrap_or_default())),
        named: Vec::new(),
    }
}
