//! Contents of the charts: reduces records to lines and columns of numbers. The page and the SVG
//! files draw the same numbers.

mod axis;
pub mod bound;
mod ccdf;
mod curve;
mod histogram;
mod scan;
pub mod study;
mod timeline;

pub use axis::{Axis, Unit, round_step};
pub use ccdf::corrected;
pub use curve::{distribution, load, names};
pub use scan::{ScannedCall, calls};

use latlab_core::record::Record;
use serde::Serialize;

#[cfg(test)]
pub mod tests;

/// A record with the name under which it is shown.
#[derive(Debug)]
pub struct NamedRecord {
    /// Its name in pictures, as its file has.
    pub name: String,
    /// The record.
    pub record: Record,
    /// The runs that are merged into it, if there are several.
    pub runs: Vec<Record>,
}

impl NamedRecord {
    /// Returns the record of a single run under this name.
    pub fn from_run(name: String, record: Record) -> NamedRecord {
        NamedRecord { name, record, runs: Vec::new() }
    }

    /// Returns its runs.
    pub fn each_run(&self) -> &[Record] {
        if self.runs.is_empty() { std::slice::from_ref(&self.record) } else { &self.runs }
    }
}

/// A chart: lines and columns over two axes.
#[derive(Debug, Serialize)]
pub struct Chart {
    /// Unique name, of its file and of its element in the page.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Caption: how to read it.
    pub about: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// How points are connected.
    pub step: Step,
    /// Its lines, the first lowest.
    pub lines: Vec<ChartLine>,
    /// What is drawn beside the lines.
    pub marks: Marks,
}

/// Interpolation between two points of a line. It is linear only for scans, which measure more
/// points where the values differ; otherwise nothing was measured between the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Vertical, then horizontal: the value of a point holds before it.
    Start,
    /// Horizontal, then vertical: the value of a point holds after it.
    End,
    /// Linear.
    None,
}

/// A line of a chart.
#[derive(Debug, Serialize)]
pub struct ChartLine {
    /// Name of the chart, as file names have it.
    pub name: String,
    /// A colour of CSS.
    pub colour: &'static str,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Its points, in units of the axes, `x` ascending.
    pub points: Vec<(f64, f64)>,
}

/// Style of a line, which distinguishes lines of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stroke {
    /// A line of usual width.
    Solid,
    /// A thin line.
    Thin,
    /// A dashed line.
    Dashed,
    /// A dotted line.
    Dotted,
}

/// Everything in a chart that is not a line.
#[derive(Debug, Default, Serialize)]
pub struct Marks {
    /// The duration of each scanned call.
    pub bars: Vec<CallBar>,
    /// Shaded areas.
    pub areas: Vec<Area>,
    /// Lanes of blocks.
    pub columns: Vec<Columns>,
    /// Opacity of the areas, 0 to 1: lower if many may overlap.
    pub shade: f64,
    /// Whether the page labels the highest point of each line, as it does over time. Three or more
    /// such lines have a panel each.
    pub peaks: bool,
}

/// A thick line on the x axis that starts at 0: the duration of a call.
#[derive(Debug, Serialize)]
pub struct CallBar {
    /// A colour of CSS.
    pub colour: &'static str,
    /// Where the call ends, on the horizontal axis.
    pub end: f64,
}

/// A shaded area between a straight line and the x axis.
#[derive(Debug, Serialize)]
pub struct Area {
    /// A colour of CSS.
    pub colour: &'static str,
    /// Its first corner.
    pub from: (f64, f64),
    /// The opposite corner.
    pub to: (f64, f64),
    /// Name of the function, if known.
    pub name: String,
    /// Index of the bar that it belongs to.
    pub bar: usize,
}

/// Columns of one name.
#[derive(Debug, Serialize)]
pub struct Columns {
    /// Its name in the legend.
    pub name: String,
    /// A colour of CSS.
    pub colour: &'static str,
    /// How its blocks are filled.
    pub look: Look,
    /// Its blocks.
    pub blocks: Vec<Block>,
}

/// Style of columns, which distinguishes columns of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Look {
    /// In full colour.
    Full,
    /// In a light shade.
    Faint,
    /// Its outline only.
    Hollow,
}

/// A rectangle: left and right, bottom and top.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Block {
    /// From and to on the horizontal axis.
    pub x: (f64, f64),
    /// From and to on the vertical axis.
    pub y: (f64, f64),
}

/// Colours that are distinct for most people, on white and on black.
#[rustfmt::skip]
pub const COLOURS: [&str; 12] = [
    "#3a78c9", "#e0812b", "#36a07a", "#d1495b", "#8d6cc4", "#a3793f", "#d070b0", "#7f8894",
    "#1fa3bd", "#97a02c", "#96352b", "#4f5799",
];

/// Returns the charts of a report: three of the latencies and one of each scanned call, as far as
/// there are measurements.
pub fn charts(sources: &[NamedRecord]) -> Vec<Chart> {
    let mut charts = Vec::new();
    let curves = curve::curves(sources);
    if !curves.is_empty() {
        charts.extend([histogram::chart(&curves), ccdf::chart(&curves)]);
        charts.extend(timeline::chart(&curves));
    }
    charts.extend(scan::charts(sources));
    charts
}
