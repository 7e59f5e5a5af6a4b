//! The axes of pictures, and where they begin and end.

use super::Line;
use latlab_core::time::Nanos;
use latlab_core::timeline::Timeline;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) log: bool,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// What stands at which place, where that is no number.
    pub(crate) named: Vec<(f64, String)>,
}

/// What the numbers of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    /// Nanoseconds, shown in the unit that fits.
    Nanos,
    /// Microseconds, and shown as such.
    Micros,
    Second,
    Count,
    /// Of 1.
    Share,
    /// A value without a unit.
    Number,
}

/// The axis of time lines, up to the end of the longest, and what is to be said of them.
pub(super) fn of_time(lines: &[&Timeline]) -> (Axis, String) {
    let ends = lines.iter().filter_map(|line| {
        let (last, _) = line.points().last()?;
        Some((last + line.width()).as_secs_f64())
    });
    let axis = Axis {
        label: "time since counting began".to_owned(),
        unit: Unit::Second,
        log: false,
        min: 0.0,
        max: ends.fold(0.001, f64::max),
        named: Vec::new(),
    };
    let about = "The worst sample of each stretch of time; a run is cut into at most 1024 of them. \
                 A stretch without samples shows the one before.";
    (axis, about.to_owned())
}

pub(super) fn highest(lines: &[Line]) -> f64 {
    heights(lines).fold(1.0, f64::max)
}

pub(super) fn lowest(lines: &[Line]) -> f64 {
    heights(lines).reduce(f64::min).unwrap_or(1.0)
}

fn heights(lines: &[Line]) -> impl Iterator<Item = f64> + '_ {
    lines.iter().flat_map(|line| &line.points).map(|p| p.1)
}

pub(super) fn decade_below(value: f64) -> f64 {
    10f64.powf(value.log10().floor())
}

/// The next power of ten: a value that is one itself would lie on the rim.
pub(super) fn decade_above(value: f64) -> f64 {
    10f64.powf(value.log10().floor() + 1.0)
}

/// A logarithmic axis has no place for 0.
pub(super) fn at_least_one(latency: Nanos) -> f64 {
    real(latency.0.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "a picture is made of pixels")]
pub(super) fn real(n: u64) -> f64 {
    n as f64
}

/// The end of a linear axis from 0 on, above all values: the nearest that four to eight steps of a
/// round length reach.
pub(super) fn round_above(value: f64) -> f64 {
    let value = value * 1.02;
    let power = 10f64.powf((value / 10.0).log10().floor());
    let ends = [1.0, 2.0, 5.0, 10.0, 20.0].into_iter().filter_map(|round| {
        let steps = (value / (round * power)).ceil();
        (4.0..=8.0).contains(&steps).then_some(steps * round * power)
    });
    ends.reduce(f64::min).unwrap_or(value)
}

/// The distance of ticks that makes four to eight of them in `span`, which is above 0.
pub(crate) fn round_step(span: f64) -> f64 {
    let power = 10f64.powf((span / 5.0).log10().floor());
    let rounds = [1.0, 2.0, 5.0, 10.0].map(|round| round * power);
    rounds.into_iter().find(|step| span / step <= 8.0).unwrap_or(span)
}
