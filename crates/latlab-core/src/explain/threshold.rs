//! From which latency on a wake-up is late, where the user has not said so.

use crate::histogram::Histogram;
use crate::time::Nanos;

/// So many wake-ups are needed to say which of them are the worst.
const ENOUGH: u64 = 1000;

/// How many of all are not late.
const IN_TIME: f64 = 0.999;

/// The latency above which wake-ups are late: what was asked for, or what one of a thousand of
/// those seen so far exceeds. It is 0, so that all are, until that can be told.
pub fn threshold(asked: Option<Nanos>, seen: &Histogram) -> Nanos {
    match asked {
        Some(asked) => asked,
        None if seen.count() < ENOUGH => Nanos(0),
        None => seen.quantile(IN_TIME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_a_thousand_is_late() {
        let mut seen = Histogram::new();
        (1..1000).for_each(|latency| seen.record(Nanos(latency)));
        assert_eq!(threshold(None, &seen), Nanos(0));
        (1..=1001).for_each(|latency| seen.record(Nanos(latency)));
        assert_eq!(threshold(None, &seen), Nanos(999));
        assert_eq!(threshold(Some(Nanos(5)), &seen), Nanos(5));
    }
}
