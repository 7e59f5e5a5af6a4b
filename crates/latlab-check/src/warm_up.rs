//! The first cycles of a thread, which are not judged.

use latlab_core::time::Nanos;
use std::fmt;
use std::str::FromStr;

/// How many of the first cycles of each thread are not judged, as they fill caches and bind functions. By
/// default, all cycles are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Cycles that begin within this time from the start of the first.
    For(Nanos),
    /// This number of cycles.
    Cycles(u64),
}

impl Default for WarmUp {
    fn default() -> WarmUp {
        WarmUp::Cycles(0)
    }
}

impl WarmUp {
    /// Whether a cycle belongs to it: the number of cycles before it, and the time from the start of the
    /// first cycle to its own.
    pub(super) fn includes(self, before: u64, since: Nanos) -> bool {
        match self {
            WarmUp::For(time) => since < time,
            WarmUp::Cycles(count) => before < count,
        }
    }
}

impl FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<WarmUp, String> {
        let number = text.strip_suffix("cycles").or(text.strip_suffix("cycle"));
        let count = number.map(|number| number.trim_end().parse().map(WarmUp::Cycles));
        let read = match count {
            Some(count) => count.ok(),
            None => text.parse().ok().map(WarmUp::For),
        };
        let why = || {
            format!("'{text}' is no time, such as 2s, and no number of cycles, such as 100cycles")
        };
        read.ok_or_else(why)
    }
}

impl fmt::Display for WarmUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WarmUp::For(time) => write!(f, "{}ns", time.0),
            WarmUp::Cycles(count) => write!(f, "{count}cycles"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_is_a_time_or_a_number_of_cycles() {
        for (text, expected) in [
            ("2s", WarmUp::For(Nanos::from_secs(2))),
            ("100cycles", WarmUp::Cycles(100)),
            ("100 cycles", WarmUp::Cycles(100)),
            ("1cycle", WarmUp::Cycles(1)),
        ] {
            assert_eq!(text.parse(), Ok(expected));
            assert_eq!(expected.to_string().parse(), Ok(expected));
        }
        for text in ["", "100", "cycles", "-1cycles", "2s cycles", "always"] {
            let error = text.parse::<WarmUp>().unwrap_err();
            assert!(error.contains("100cycles"), "{text}: {error}");
        }
    }

    #[test]
    fn cycle_belongs_to_the_warm_up_by_its_number_or_its_start() {
        let time = WarmUp::For(Nanos(10));
        assert!(time.includes(1000, Nanos(9)) && !time.includes(0, Nanos(10)));
        let count = WarmUp::Cycles(2);
        assert!(count.includes(1, Nanos(1000)) && !count.includes(2, Nanos(0)));
        assert!(!WarmUp::default().includes(0, Nanos(0)));
    }
}
