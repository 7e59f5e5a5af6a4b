//! A figure's samples over time, the worst of each stretch of it.

use super::super::axis::{at_least_one, decade_above, decade_below, highest, lowest, round_above};
use super::super::{Axis, Chart, Line, Marks, Step, Stroke, Unit};
use super::Samples;
use latlab_core::study::picture::Picture;
use latlab_core::time::Nanos;

/// The worst sample of each stretch of time, of all CPUs and repetitions.
pub(super) fn chart(picture: &Picture, samples: &[Samples]) -> Chart {
    let lines: Vec<Line> = samples.iter().map(line).collect();
    let end = |one: &Samples| {
        let last = one.timeline.points().last().map_or(Nanos(0), |(at, _)| at);
        (last + one.timeline.width()).as_secs_f64()
    };
    let (min, max) = if picture.log {
        (decade_below(lowest(&lines)), decade_above(highest(&lines)))
    } else {
        (0.0, round_above(highest(&lines)))
    };
    Chart {
        name: picture.name.clone(),
        title: String::new(),
        about: "The worst sample of each stretch of time; a run is cut into at most 1024 of them. \
                A stretch without samples shows the one before."
            .to_owned(),
        x: Axis {
            label: "time since counting began".to_owned(),
            unit: Unit::Second,
            log: false,
            min: 0.0,
            max: samples.iter().map(end).fold(0.001, f64::max),
            named: Vec::new(),
        },
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
