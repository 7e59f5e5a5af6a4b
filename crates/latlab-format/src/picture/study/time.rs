//! Samples of a figure over time.

use super::super::axis::{
    at_least_one, decade_above, decade_below, highest, lowest, round_above, time_axis,
};
use super::super::{Axis, Chart, ChartLine, Marks, Step, Stroke, Unit};
use super::Samples;
use latlab_core::study::picture::Picture;
use latlab_core::time::Nanos;

/// Returns the worst sample of each interval of time, of all CPUs and repetitions.
pub(super) fn worst(picture: &Picture, samples: &[Samples]) -> Chart {
    let lines = samples.iter().map(|one| {
        let points = one.timeline.points().filter(|(_, worst)| *worst > Nanos(0));
        line(one, points.map(|(at, worst)| (at.as_secs_f64(), at_least_one(worst))).collect())
    });
    chart(picture, samples, lines.collect())
}

/// Returns the worst sample so far, up to the end of the measurement.
pub(super) fn maximum(picture: &Picture, samples: &[Samples]) -> Chart {
    let lines = samples.iter().map(|one| {
        let rises = one.timeline.running_maximum().into_iter();
        let mut points: Vec<_> =
            rises.map(|(at, worst)| (at.as_secs_f64(), at_least_one(worst))).collect();
        if let (Some((end, _)), Some((_, worst))) = (one.timeline.points().last(), points.last()) {
            points.push((end.as_secs_f64(), *worst));
        }
        line(one, points)
    });
    let mut chart = chart(picture, samples, lines.collect());
    let about = "The worst sample so far. Where a line still rises near its end, a longer run would find \
                 more.";
    chart.marks.peaks = false;
    Chart { about: about.to_owned(), ..chart }
}

fn chart(picture: &Picture, samples: &[Samples], lines: Vec<ChartLine>) -> Chart {
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

fn line(one: &Samples, points: Vec<(f64, f64)>) -> ChartLine {
    ChartLine { name: one.name.clone(), colour: one.colour, stroke: Stroke::Solid, points }
}
