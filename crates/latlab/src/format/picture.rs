//! What the pictures of a report show: records in, lines of numbers out. The page and the SVG
//! files draw the same lines, so that no number is reduced twice.

mod axis;
mod ccdf;
mod curve;
mod histogram;
mod scan;
pub(crate) mod study;
mod timeline;

pub(crate) use axis::{Axis, Unit, round_step};
pub(crate) use ccdf::corrected;
pub(crate) use curve::{distribution, load, names};
pub(crate) use scan::{Call, calls};

use latlab_core::record::Record;
use serde::Serialize;

#[cfg(test)]
pub(crate) mod tests;

/// A record and what to call it among others.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) record: Record,
    /// The runs that are merged in it, where there are several.
    pub(crate) runs: Vec<Record>,
}

impl Source {
    /// One run.
    pub(crate) fn of_run(name: String, record: Record) -> Source {
        Source { name, record, runs: Vec::new() }
    }

    /// Each of its runs.
    pub(crate) fn each_run(&self) -> &[Record] {
        if self.runs.is_empty() { std::slice::from_ref(&self.record) } else { &self.runs }
    }
}

/// One picture: lines over two axes.
#[derive(Debug, Serialize)]
pub(crate) struct Chart {
    /// The name of its file and of its place in the page, of which no two are the same.
    pub(crate) name: String,
    pub(crate) title: String,
    /// How to read it, in a sentence or two.
    pub(crate) about: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) step: Step,
    pub(crate) lines: Vec<Line>,
    pub(crate) marks: Marks,
}

/// How a line gets from one point to the next: aslant only in a scan, which goes on measuring where
/// two points differ; elsewhere nothing was measured between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    /// Up or down at once, then along: the height of a point holds until it is reached.
    Start,
    /// Along, then up or down: the height of a point holds from it on.
    End,
    /// Straight.
    None,
}

#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    pub(crate) stroke: Stroke,
    pub(crate) points: Vec<(f64, f64)>,
}

/// What a line looks like beside others of its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stroke {
    Solid,
    Thin,
    Dashed,
    Dotted,
}

/// What is not a line, and stands behind them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Marks {
    pub(crate) bars: Vec<Bar>,
    pub(crate) areas: Vec<Area>,
    pub(crate) columns: Vec<Columns>,
    /// How dark the areas are, of 1: less where many may lie over each other.
    pub(crate) shade: f64,
}

/// A thick line on the x axis, from its 0 on.
#[derive(Debug, Serialize)]
pub(crate) struct Bar {
    pub(crate) colour: &'static str,
    pub(crate) end: f64,
}

/// A shaded area between a straight line and the x axis.
#[derive(Debug, Serialize)]
pub(crate) struct Area {
    pub(crate) colour: &'static str,
    pub(crate) from: (f64, f64),
    pub(crate) to: (f64, f64),
    /// What it is, where that is known.
    pub(crate) name: String,
    /// Which of the bars it belongs to.
    pub(crate) bar: usize,
}

/// Upright bars of one name.
#[derive(Debug, Serialize)]
pub(crate) struct Columns {
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    pub(crate) look: Look,
    pub(crate) blocks: Vec<Block>,
}

/// What a column looks like beside others of its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Look {
    Full,
    Faint,
    /// Its outline only.
    Hollow,
}

/// A rectangle: what is at the left and the right, the bottom and the top.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Block {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
}

/// Told apart by most eyes, on white as on black.
#[rustfmt::skip]
pub(crate) const COLOURS: [&str; 12] = [
    "#3a78c9", "#e0812b", "#36a07a", "#d1495b", "#8d6cc4", "#a3793f", "#d070b0", "#7f8894",
    "#1fa3bd", "#97a02c", "#96352b", "#4f5799",
];

/// The pictures of a report: three of the latencies and one of each call that was scanned, or
/// none where nothing was measured.
pub(crate) fn charts(sources: &[Source]) -> Vec<Chart> {
    let mut charts = Vec::new();
    let curves = curve::curves(sources);
    if !curves.is_empty() {
        charts.extend([histogram::chart(&curves), ccdf::chart(&curves), timeline::chart(&curves)]);
    }
    charts.extend(scan::charts(sources));
    charts
}
