//! Times in whole nanoseconds: parsing and formatting.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A duration, or a point in time of a monotonic clock: whole nanoseconds, 0 to 584 years.
///
/// Written with a unit (`50us`, `1.5s`, `10m`) or several (`1h30m`), stored in records as a bare
/// integer.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Nanos(pub u64);

/// The units of a duration, by name.
const UNITS: &[(&str, u64)] = &[
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Why a text is not a duration; the message says how to write one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// A number without a unit.
    #[error("'{0}' has no unit: write {0}us, {0}ms or {0}s")]
    NoUnit(String),
    /// The number or the unit is invalid.
    #[error(
        "'{0}' is not a duration: write a number and a unit (ns, us, ms, s, m, h, d), such as 50us, \
         1.5s or 1h30m"
    )]
    NotADuration(String),
    /// More nanoseconds than 64 bits hold.
    #[error("'{0}' is too long: at most 584 years")]
    TooLong(String),
}

impl Nanos {
    /// The largest time.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// This many microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1_000)
    }

    /// This many milliseconds.
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// This many seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs * 1_000_000_000)
    }

    /// Returns it without rounding, as a user writes it: `5min`, `1500us`.
    pub fn exact(self) -> String {
        let units = [
            (3_600_000_000_000, "h"),
            (60_000_000_000, "min"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        let whole = |(scale, _): &&(u64, &str)| self.0 > 0 && self.0.is_multiple_of(*scale);
        let (scale, name) = units.iter().find(whole).unwrap_or(&(1, "ns"));
        format!("{}{name}", self.0 / scale)
    }

    /// Returns seconds, for pictures and ratios; never for arithmetic on samples.
    #[expect(clippy::cast_precision_loss, reason = "pictures have fewer than 52 bits")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl FromStr for Nanos {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Nanos, TimeError> {
        if text == "0" {
            return Ok(Nanos(0));
        }
        if text.chars().all(is_of_number) && text.parse::<f64>().is_ok() {
            return Err(TimeError::NoUnit(text.to_owned()));
        }
        let value = sum_of_parts(text).ok_or_else(|| TimeError::NotADuration(text.to_owned()))?;
        u64::try_from(value).map(Nanos).map_err(|_| TimeError::TooLong(text.to_owned()))
    }
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// Returns the sum of one or more numbers, each with a unit smaller than the one before.
fn sum_of_parts(text: &str) -> Option<u128> {
    let (mut rest, mut sum, mut before) = (text, 0_u128, u64::MAX);
    loop {
        let (number, after) = rest.split_at(rest.find(|c| !is_of_number(c))?);
        let (unit, next) = after.split_at(after.find(is_of_number).unwrap_or(after.len()));
        let (_, scale) = UNITS.iter().find(|(name, scale)| *name == unit && *scale < before)?;
        sum = sum.saturating_add(scaled(number, *scale)?);
        if next.is_empty() {
            return Some(sum);
        }
        (rest, before) = (next, *scale);
    }
}

/// Returns `number` × `scale` in integers, so that `0.1ms` is 100 000 ns and not 99 999; none if
/// `number` is not a number.
fn scaled(number: &str, scale: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole.saturating_mul(u128::from(scale));
    let mut unit = u128::from(scale) * 1_000_000_000;
    for digit in fraction.chars().take(20) {
        unit /= 10;
        value = value.saturating_add(u128::from(digit.to_digit(10)?) * unit / 1_000_000_000);
    }
    Some(value)
}

impl fmt::Display for Nanos {
    /// Four significant digits in the appropriate unit: `12.35 us`, `999 ns`, `1.5 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0..1_000 => format!("{} ns", self.0),
            1_000..1_000_000 => in_unit(self.0, 1_000, "us"),
            1_000_000..1_000_000_000 => in_unit(self.0, 1_000_000, "ms"),
            1_000_000_000..60_000_000_000 => in_unit(self.0, 1_000_000_000, "s"),
            60_000_000_000..3_600_000_000_000 => in_unit(self.0, 60_000_000_000, "min"),
            _ => in_unit(self.0, 3_600_000_000_000, "h"),
        };
        f.pad(&text)
    }
}

fn in_unit(nanos: u64, unit: u64, name: &str) -> String {
    #[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
    let value = nanos as f64 / unit as f64;
    let digits = if value < 10.0 {
        3
    } else if value < 100.0 {
        2
    } else {
        1
    };
    let text = format!("{value:.digits$}");
    format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
}

impl std::ops::Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Nanos {
    type Output = Nanos;
    /// Saturates at zero.
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn duration_is_read_with_each_unit() {
        let read = |text: &str| text.parse::<Nanos>().map(|n| n.0);
        assert_eq!(read("50us"), Ok(50_000));
        assert_eq!(read("53.35ms"), Ok(53_350_000));
        assert_eq!(read("1.5s"), Ok(1_500_000_000));
        assert_eq!(read(".5h"), Ok(1_800_000_000_000));
        assert_eq!(read("0"), Ok(0));
        assert_eq!((read("5m"), read("5min")), (Ok(300_000_000_000), Ok(300_000_000_000)));
        assert_eq!(read("1h30m"), read("90m"));
        assert_eq!(read("2d12h0.5s"), Ok(216_000_500_000_000));
    }

    #[test]
    fn duration_without_a_unit_is_refused_with_a_hint() {
        let wrong = "50".parse::<Nanos>().unwrap_err();
        assert_eq!(wrong.to_string(), "'50' has no unit: write 50us, 50ms or 50s");
        for text in ["", "ms", "1.2.3s", "-5us", "5 parsecs", ".", "30m1h", "1s1s", "1h30"] {
            assert!(matches!(text.parse::<Nanos>(), Err(TimeError::NotADuration(_))), "{text}");
        }
        assert!(matches!("99999999999h".parse::<Nanos>(), Err(TimeError::TooLong(_))));
    }

    #[test]
    fn duration_is_shown_with_four_digits() {
        assert_eq!(Nanos(0).to_string(), "0 ns");
        assert_eq!(Nanos(12_345).to_string(), "12.35 us");
        assert_eq!(Nanos(504_525_000).to_string(), "504.5 ms");
        assert_eq!(Nanos::from_secs(90).to_string(), "1.5 min");
    }

    proptest! {
        #[test]
        fn nanoseconds_survive_formatting_and_parsing(n in any::<u64>()) {
            prop_assert_eq!(format!("{n}ns").parse::<Nanos>(), Ok(Nanos(n)));
            prop_assert_eq!(Nanos(n).exact().parse::<Nanos>(), Ok(Nanos(n)));
        }

        #[test]
        fn parser_never_panics(text in ".*") {
            let _ = text.parse::<Nanos>();
        }
    }
}
