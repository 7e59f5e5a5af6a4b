//! Samples of a figure over time.

use super::super::axis::{
    at_least_one, decade_above, decade_below, highest, lowest, round_above, time_axis,
};
use super::super::{Axis, Chart, ChartLine, Marks, Step, Stroke, Unit};
use super::Samples;
use latlab_core::study::picture::Picture;
use latlab_core::time::Nanos;

/// Returns the worst sample of each interval of time, of all CPUs and repetitions.
pub(super) fn chart(picture: &Picture, samples: &[Samples]) -> Chart {
    let lines: Vec<ChartLine> = samples.iter().map(line).collect();
    let timelines: Vec<_> = samples.iter().map(|one| &one.timeline).collect();
    let (x, about) = time_axis(&timelines);
    let (min, max) = if picture.log {
        (decade_below(lowest(&lines)), decade_above(highest(&lines)))
    } else {
        (0.0, round_above(highest(&lines)))
    };
    Chart {
        name: picture.name.clone(),
        title: String::new(),
        about,
        x,
        y: Axis {
            label: super::label(samples),
            unit: Unit::Nanos,
            log: picture.log,
            min,
            max,
            named: Vec::new(),
        },
        step: Step::End,
        lines,
        marks: Marks { peaks: true, ..Marks::default() },
    }
}

fn line(one: &Samples) -> ChartLine {
    let sampled = one.timeline.points().filter(|(_, worst)| *worst > Nanos(0));
    let points = sampled.map(|(at, worst)| (at.as_secs_f64(), at_least_one(worst))).collect();
    ChartLine { name: one.name.clone(), colour: one.colour, stroke: Stroke::Solid, points }
}
