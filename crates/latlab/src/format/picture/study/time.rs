//! A figure's samples over time, the worst of each stretch of it.

use super::super::axis::{
    at_least_one, decade_above, decade_below, highest, lowest, of_time, round_above,
};
use super::super::{Axis, Chart, Line, Marks, Step, Stroke, Unit};
use super::Samples;
use latlab_core::study::picture::Picture;
use latlab_core::time::Nanos;

/// The worst sample of each stretch of time, of all CPUs and repetitions.
pub(super) fn chart(picture: &Picture, samples: &[Samples]) -> Chart {
    let lines: Vec<Line> = samples.iter().map(line).collect();
    let timelines: Vec<_> = samples.iter().map(|one| &one.timeline).collect();
    let (x, about) = of_time(&timelines);
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
        marks: Marks::default(),
    }
}

fn line(one: &Samples) -> Line {
    let sampled = one.timeline.points().filter(|(_, worst)| *worst > Nanos(0));
    let points = sampled.map(|(at, worst)| (at.as_secs_f64(), at_least_one(worst))).collect();
    Line { name: one.name.clone(), colour: one.colour, stroke: Stroke::Solid, points }
}
