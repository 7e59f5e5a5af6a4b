//! Axes of charts and their ranges.

use super::ChartLine;
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;
use serde::Serialize;

/// An axis of a chart.
#[derive(Debug, Serialize)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Its least value.
    pub min: f64,
    /// Its greatest value.
    pub max: f64,
    /// Positions with their labels, if the labels are not numbers.
    pub named: Vec<(f64, String)>,
}

impl Axis {
    /// Returns the place of a value on the axis, from 0 at its beginning to 1 at its end.
    pub fn share(&self, value: f64) -> f64 {
        let on_paper = |value: f64| if self.log { value.ln() } else { value };
        let (min, max) = (on_paper(self.min), on_paper(self.max));
        (on_paper(value) - min) / (max - min)
    }
}

/// Unit of the numbers of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds, shown with the fitting prefix.
    Nanos,
    /// Microseconds, shown without conversion.
    Micros,
    /// Seconds.
    Second,
    /// A number of things.
    Count,
    /// Share of 1, shown as a percentage.
    Share,
    /// A value without a unit.
    Number,
}

/// Returns the axis of time lines, up to the end of the longest, and their caption.
pub(super) fn time_axis(lines: &[&Timeline]) -> (Axis, String) {
    let ends = lines.iter().filter_map(|line| {
        let (last, _) = line.points().last()?;
        Some((last + line.width()).as_secs_f64())
    });
    let axis = Axis {
        label: "time since start of measurement".to_owned(),
        unit: Unit::Second,
        log: false,
        min: 0.0,
        max: ends.fold(0.001, f64::max),
        named: Vec::new(),
    };
    let about = "Worst sample of each interval of time; a run has at most 1024 intervals. An interval \
                 without samples repeats the one before.";
    (axis, about.to_owned())
}

/// Returns the highest value of all lines, at least 1.
pub(super) fn highest(lines: &[ChartLine]) -> f64 {
    heights(lines).fold(1.0, f64::max)
}

/// Returns the lowest value of all lines.
pub(super) fn lowest(lines: &[ChartLine]) -> f64 {
    heights(lines).reduce(f64::min).unwrap_or(1.0)
}

fn heights(lines: &[ChartLine]) -> impl Iterator<Item = f64> + '_ {
    lines.iter().flat_map(|line| &line.points).map(|p| p.1)
}

/// Returns the greatest power of ten that is not above a value.
pub(super) fn decade_below(value: f64) -> f64 {
    10f64.powf(value.log10().floor())
}

/// Returns the next power of ten above a value, so that a power of ten is not on the border.
pub(super) fn decade_above(value: f64) -> f64 {
    10f64.powf(value.log10().floor() + 1.0)
}

/// Returns a latency for a logarithmic axis, which has no 0.
pub(super) fn at_least_one(latency: Nanos) -> f64 {
    real(latency.0.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "a pixel is less precise")]
pub(super) fn real(n: u64) -> f64 {
    n as f64
}

/// Returns the end of a linear axis from 0: the nearest number above `value` that is four to eight
/// round steps.
pub(super) fn round_above(value: f64) -> f64 {
    let value = value * 1.02;
    let power = 10f64.powf((value / 10.0).log10().floor());
    let ends = [1.0, 2.0, 5.0, 10.0, 20.0].into_iter().filter_map(|round| {
        let steps = (value / (round * power)).ceil();
        (4.0..=8.0).contains(&steps).then_some(steps * round * power)
    });
    ends.reduce(f64::min).unwrap_or(value)
}

/// Returns the distance of ticks that gives four to eight of them in `span`, which is above 0.
pub fn round_step(span: f64) -> f64 {
    let power = 10f64.powf((span / 5.0).log10().floor());
    let rounds = [1.0, 2.0, 5.0, 10.0].map(|round| round * power);
    rounds.into_iter().find(|step| span / step <= 8.0).unwrap_or(span)
}
