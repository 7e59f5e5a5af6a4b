//! Quantities: numbers and times, and their arithmetic.

use crate::time::Nanos;
use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

/// A number, a time, or a power of time: nanoseconds to the power of `time`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The number of units.
    pub value: f64,
    /// The power: 0 for a number, 1 for a time, -1 for a rate.
    pub time: i32,
}

impl Quantity {
    /// A pure number.
    pub const fn number(value: f64) -> Quantity {
        Quantity { value, time: 0 }
    }

    /// A time.
    #[expect(clippy::cast_precision_loss, reason = "a time of 2^53 ns is 104 days long")]
    pub const fn time(time: Nanos) -> Quantity {
        Quantity { value: time.0 as f64, time: 1 }
    }

    /// Parses a printed time (`time` is 1) or number (0), optionally preceded by "about"; none if
    /// there is other text, as in "below 100 us".
    pub fn printed(text: &str, time: i32) -> Option<f64> {
        let text = text.trim();
        let text = text.strip_prefix("about ").unwrap_or(text).replace(' ', "");
        match time {
            1 => text.parse().ok().map(|time| Quantity::time(time).value),
            0 => text.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0),
            _ => None,
        }
    }

    /// Returns the name of a dimension, by its power of time.
    pub fn kind(time: i32) -> String {
        match time {
            0 => "a number".to_owned(),
            1 => "a time".to_owned(),
            -1 => "a rate".to_owned(),
            power => format!("a time to the power of {power}"),
        }
    }
}

// A sum has the dimension of its first operand: the caller has checked that both are equal.

impl Add for Quantity {
    type Output = Quantity;
    fn add(self, other: Quantity) -> Quantity {
        Quantity { value: self.value + other.value, time: self.time }
    }
}

impl Sub for Quantity {
    type Output = Quantity;
    fn sub(self, other: Quantity) -> Quantity {
        Quantity { value: self.value - other.value, time: self.time }
    }
}

impl Mul for Quantity {
    type Output = Quantity;
    fn mul(self, other: Quantity) -> Quantity {
        let time = self.time.saturating_add(other.time);
        Quantity { value: self.value * other.value, time }
    }
}

impl Div for Quantity {
    type Output = Quantity;
    fn div(self, other: Quantity) -> Quantity {
        let time = self.time.saturating_sub(other.time);
        Quantity { value: self.value / other.value, time }
    }
}

impl fmt::Display for Quantity {
    /// A time in the appropriate unit, a number with four significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.time {
            0 => f.pad(&digits(self.value)),
            1 => {
                let sign = if self.value < 0.0 { "-" } else { "" };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "longer times are shown as 584 years"
                )]
                let time = Nanos(self.value.abs().round() as u64);
                f.pad(&format!("{sign}{time}"))
            }
            -1 => f.pad(&format!("{} per s", digits(self.value * 1e9))),
            power => f.pad(&format!("{} ns^{power}", digits(self.value))),
        }
    }
}

/// Four significant digits; large whole numbers in full.
fn digits(value: f64) -> String {
    if !value.is_finite() || value.fract() == 0.0 || value.abs() >= 1_000.0 {
        return format!("{value:.0}");
    }
    let (mut digits, mut scaled) = (0, value.abs());
    while scaled < 1_000.0 && digits < 12 {
        (digits, scaled) = (digits + 1, scaled * 10.0);
    }
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotient_of_times_is_a_number_and_product_is_not_a_time() {
        let (long, short) = (Nanos::from_millis(400), Nanos::from_micros(100));
        let (long, short) = (Quantity::time(long), Quantity::time(short));
        assert_eq!(long / short, Quantity::number(4000.0));
        assert_eq!((long * short).time, 2);
        assert_eq!((Quantity::number(5.0) / short).to_string(), "50000 per s");
    }

    #[test]
    fn printed_value_is_read_only_without_further_words() {
        assert_eq!(Quantity::printed("52.1 us", 1), Some(52_100.0));
        assert_eq!(Quantity::printed("about 22 us", 1), Some(22_000.0));
        assert_eq!(Quantity::printed("3.7", 0), Some(3.7));
        for (text, time) in [("below 100 us", 1), ("-9.8 ms", 1), ("3.7", 1), ("1 us", 0)] {
            assert_eq!(Quantity::printed(text, time), None, "{text}");
        }
    }

    #[test]
    fn quantities_are_shown_in_their_unit() {
        let shown = |value, time| Quantity { value, time }.to_string();
        assert_eq!(shown(399_512_345.0, 1), "399.5 ms");
        assert_eq!(shown(-1_500.0, 1), "-1.5 us");
        assert_eq!(shown(3.7, 0), "3.7");
        assert_eq!(shown(0.034_567, 0), "0.03457");
        assert_eq!(shown(123_456.0, 0), "123456");
    }
}
