//! Worst latency over time.

use super::axis::{at_least_one, decade_above, decade_below, highest, lowest, time_axis};
use super::curve::Curve;
use super::{Axis, Chart, ChartLine, Marks, Step, Unit};
use latlab_core::time::Nanos;

/// Returns the chart: the worst latency of each interval of time; none if no series has intervals,
/// as with `latlab watch`.
pub(super) fn chart(curves: &[Curve<'_>]) -> Option<Chart> {
    let lines: Vec<ChartLine> = curves
        .iter()
        .map(|curve| {
            let points = curve.series.timeline.points();
            let sampled = points.filter(|(_, worst)| *worst > Nanos(0));
            curve.line(sampled.map(|(at, worst)| (at.as_secs_f64(), at_least_one(worst))).collect())
        })
        .collect();
    if lines.iter().all(|line| line.points.is_empty()) {
        return None;
    }
    let timelines: Vec<_> = curves.iter().map(|curve| &curve.series.timeline).collect();
    let (x, about) = time_axis(&timelines);
    Some(Chart {
        name: "timeline".to_owned(),
        title: "Worst latency over time".to_owned(),
        about,
        x,
        y: Axis {
            label: "worst latency".to_owned(),
            unit: Unit::Nanos,
            log: true,
            min: decade_below(lowest(&lines)),
            max: decade_above(highest(&lines)),
            named: Vec::new(),
        },
        step: Step::End,
        lines,
        marks: Marks { peaks: true, ..Marks::default() },
    })
}
