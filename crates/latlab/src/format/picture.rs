//! Contents of the charts: reduces records to lines and columns of numbers. The page and the SVG
//! files draw the same numbers.

mod axis;
pub(crate) mod bound;
mod ccdf;
mod curve;
mod histogram;
mod scan;
pub(crate) mod study;
mod timeline;

pub(crate) use axis::{Axis, Unit, round_step};
pub(crate) use ccdf::corrected;
pub(crate) use curve::{distribution, load, names};
pub(crate) use scan::{ScannedCall, calls};

use latlab_core::record::Record;
use serde::Serialize;

#[cfg(test)]
pub(crate) mod tests;

/// A record with the name under which it is shown.
#[derive(Debug)]
pub(crate) struct NamedRecord {
    pub(crate) name: String,
    pub(crate) record: Record,
    /// The runs that are merged into it, if there are several.
    pub(crate) runs: Vec<Record>,
}

impl NamedRecord {
    /// Returns the record of a single run under this name.
    pub(crate) fn from_run(name: String, record: Record) -> NamedRecord {
        NamedRecord { name, record, runs: Vec::new() }
    }

    /// Returns its runs.
    pub(crate) fn each_run(&self) -> &[Record] {
        if self.runs.is_empty() { std::slice::from_ref(&self.record) } else { &self.runs }
    }
}

/// A chart: lines and columns over two axes.
#[derive(Debug, Serialize)]
pub(crate) struct Chart {
    /// Unique name, of its file and of its element in the page.
    pub(crate) name: String,
    pub(crate) title: String,
    /// Caption: how to read it.
    pub(crate) about: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) step: Step,
    pub(crate) lines: Vec<ChartLine>,
    pub(crate) marks: Marks,
}

/// Interpolation between two points of a line. It is linear only for scans, which measure more
/// points where the values differ; otherwise nothing was measured between the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    /// Vertical, then horizontal: the value of a point holds before it.
    Start,
    /// Horizontal, then vertical: the value of a point holds after it.
    End,
    /// Linear.
    None,
}

/// A line of a chart.
#[derive(Debug, Serialize)]
pub(crate) struct ChartLine {
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    pub(crate) stroke: Stroke,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Style of a line, which distinguishes lines of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stroke {
    Solid,
    Thin,
    Dashed,
    Dotted,
}

/// Everything in a chart that is not a line.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Marks {
    pub(crate) bars: Vec<CallBar>,
    pub(crate) areas: Vec<Area>,
    pub(crate) columns: Vec<Columns>,
    /// Opacity of the areas, 0 to 1: lower if many may overlap.
    pub(crate) shade: f64,
    /// Whether the page labels the highest point of each line, as it does over time. Three or more
    /// such lines have a panel each.
    pub(crate) peaks: bool,
}

/// A thick line on the x axis that starts at 0: the duration of a call.
#[derive(Debug, Serialize)]
pub(crate) struct CallBar {
    pub(crate) colour: &'static str,
    pub(crate) end: f64,
}

/// A shaded area between a straight line and the x axis.
#[derive(Debug, Serialize)]
pub(crate) struct Area {
    pub(crate) colour: &'static str,
    pub(crate) from: (f64, f64),
    pub(crate) to: (f64, f64),
    /// Name of the function, if known.
    pub(crate) name: String,
    /// Index of the bar that it belongs to.
    pub(crate) bar: usize,
}

/// Columns of one name.
#[derive(Debug, Serialize)]
pub(crate) struct Columns {
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    pub(crate) look: Look,
    pub(crate) blocks: Vec<Block>,
}

/// Style of columns, which distinguishes columns of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Look {
    Full,
    Faint,
    /// Its outline only.
    Hollow,
}

/// A rectangle: left and right, bottom and top.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Block {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
}

/// Colours that are distinct for most people, on white and on black.
#[rustfmt::skip]
pub(crate) const COLOURS: [&str; 12] = [
    "#3a78c9", "#e0812b", "#36a07a", "#d1495b", "#8d6cc4", "#a3793f", "#d070b0", "#7f8894",
    "#1fa3bd", "#97a02c", "#96352b", "#4f5799",
];

/// Returns the charts of a report: three of the latencies and one of each scanned call, as far as
/// there are measurements.
pub(crate) fn charts(sources: &[NamedRecord]) -> Vec<Chart> {
    let mut charts = Vec::new();
    let curves = curve::curves(sources);
    if !curves.is_empty() {
        charts.extend([histogram::chart(&curves), ccdf::chart(&curves)]);
        charts.extend(timeline::chart(&curves));
    }
    charts.extend(scan::charts(sources));
    charts
}
