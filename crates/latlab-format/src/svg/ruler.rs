//! Axes of SVG pictures: scale, ticks and labels.

use crate::picture::{Axis, Unit, round_step};
use crate::printable;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis as plotters needs it.
pub(super) struct Ruler<'a>(pub(super) &'a Axis);

impl Ranged for Ruler<'_> {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "a pixel is a small number")]
    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let place = |v: f64| if self.0.log { v.log10() } else { v };
        let (min, max) = (place(self.0.min), place(self.0.max));
        let share = (place(*value) - min) / (max - min);
        // Values off scale are drawn at the border.
        (f64::from(from) + f64::from(to - from) * share.clamp(0.0, 1.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        if !self.0.named.is_empty() {
            return self.0.named.iter().map(|(place, _)| *place).collect();
        }
        ticks(self.0)
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.0.min..self.0.max
    }
}

impl ValueFormatter<f64> for Ruler<'_> {
    fn format(value: &f64) -> String {
        value.to_string()
    }

    fn format_ext(&self, value: &f64) -> String {
        // Ticks are exactly the named positions.
        let named = self.0.named.iter().find(|(place, _)| place.total_cmp(value).is_eq());
        named.map_or_else(|| shown(*value, self.0), |(_, name)| printable(name))
    }
}

/// Upper bound on the ticks of a linear axis, which normally has fewer.
const MOST_TICKS: usize = 20;

/// Powers of ten, or four to eight round values.
fn ticks(axis: &Axis) -> Vec<f64> {
    let mut ticks = Vec::new();
    if axis.unit == Unit::Count {
        ticks.push(axis.min);
    }
    if axis.log {
        let mut exponent = axis.min.log10().ceil();
        while exponent <= axis.max.log10() + 1e-9 {
            ticks.push(10f64.powf(exponent));
            exponent += 1.0;
        }
    } else {
        let step = round_step(axis.max - axis.min);
        let mut nth = (axis.min / step).ceil();
        // For huge numbers, adding 1 may not change `nth`.
        while nth * step <= axis.max && ticks.len() < MOST_TICKS {
            // Adding 0 removes the sign of a negative zero.
            ticks.push(nth * step + 0.0);
            nth += 1.0;
        }
    }
    ticks
}

/// Formats a tick. All ticks of a linear axis have the unit of its end.
fn shown(value: f64, axis: &Axis) -> String {
    let scale = if axis.log { value } else { axis.max };
    scaled(value, axis.unit, scale)
}

/// Formats a value, a time in the unit that fits `scale`.
fn scaled(value: f64, unit: Unit, scale: f64) -> String {
    // Removes the rounding error of the logarithm.
    let brief = |value: f64| ((value * 1e4).round() / 1e4).to_string();
    match unit {
        // The lower end of a logarithmic axis of counts stands for 0.
        Unit::Count if value < 1.0 => "0".to_owned(),
        Unit::Share if value > 0.0 && value < 0.9e-4 => format!("1 in {}", grouped(1.0 / value)),
        Unit::Share => format!("{} %", brief(value * 100.0)),
        Unit::Number if value < 1e4 => brief(value),
        Unit::Count | Unit::Number => grouped(value),
        // A minus sign and grouped digits, as in tables.
        Unit::Micros if value < 0.0 => format!("−{}", scaled(-value, unit, scale)),
        Unit::Micros if value < 1e3 => format!("{} µs", brief(value)),
        Unit::Micros => format!("{} µs", grouped(value)),
        Unit::Second => format!("{} s", brief(value)),
        Unit::Nanos if value < 1e-3 => "0".to_owned(),
        Unit::Nanos if scale < 0.999e3 => format!("{} ns", brief(value)),
        Unit::Nanos if scale < 0.999e6 => format!("{} µs", brief(value / 1e3)),
        Unit::Nanos if scale < 0.999e9 => format!("{} ms", brief(value / 1e6)),
        Unit::Nanos => format!("{} s", brief(value / 1e9)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of samples or microseconds is positive and below 2⁶⁴"
)]
fn grouped(value: f64) -> String {
    crate::grouped(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(min: f64, max: f64) -> Vec<String> {
        labels_of(min, max, Unit::Micros, false)
    }

    fn labels_of(min: f64, max: f64, unit: Unit, log: bool) -> Vec<String> {
        let axis = Axis { label: String::new(), unit, log, min, max, named: Vec::new() };
        ticks(&axis).into_iter().map(|tick| shown(tick, &axis)).collect()
    }

    #[test]
    fn times_of_linear_axis_have_one_unit_of_logarithmic_axis_their_own() {
        let narrow = labels_of(0.9958e6, 1.0042e6, Unit::Nanos, false);
        assert_eq!(narrow[0], "0.996 ms");
        assert!(narrow.iter().all(|label| label.ends_with(" ms")), "{narrow:?}");
        assert_eq!(labels_of(0.0, 1.1e6, Unit::Nanos, false)[..2], ["0", "0.2 ms"]);
        assert_eq!(labels_of(1e5, 1e6, Unit::Nanos, true), ["100 µs", "1 ms"]);
    }

    #[test]
    fn linear_axis_has_round_ticks_and_zero() {
        assert_eq!(labels(-3.1, 64.0)[..3], ["0 µs", "10 µs", "20 µs"]);
        assert_eq!(labels(-600.0, 3_400.0)[..3], ["−500 µs", "0 µs", "500 µs"]);
        assert_eq!(labels(-600.0, 3_400.0)[7], "3\u{202f}000 µs");
        assert_eq!(labels(0.0, 0.04)[..3], ["0 µs", "0.005 µs", "0.01 µs"]);
    }

    #[test]
    fn axis_has_three_to_nine_ticks() {
        for (min, max) in [(-9.3e15, 9.3e15), (0.0, 1.8e16), (-9.3e15, 1.0), (0.0, 1e-3)] {
            assert!((3..=9).contains(&labels(min, max).len()), "{min} {max}");
        }
    }
}
