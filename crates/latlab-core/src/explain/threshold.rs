//! From which latency on a wake-up is late, where the user has not said so.

use crate::histogram::Histogram;
use crate::time::Nanos;

/// So many wake-ups are needed to say which of them are the worst.
const ENOUGH: u64 = 1000;

/// How many of all are not late.
const IN_TIME: f64 = 0.999;

/// How many of all are in no danger of being late in the end.
const SAFE: f64 = 0.99;

/// The latency above which wake-ups are late: what was asked for, or what one of a thousand of
/// those seen so far exceeds. It is 0, so that all are, until that can be told.
pub fn late(asked: Option<Nanos>, seen: &Histogram) -> Nanos {
    asked.unwrap_or_else(|| quantile(IN_TIME, seen))
}

/// The latency above which wake-ups are to be watched, because they may be late in the end: what
/// is late changes while a run goes on.
pub fn suspicious(asked: Option<Nanos>, seen: &Histogram) -> Nanos {
    asked.unwrap_or_else(|| quantile(SAFE, seen))
}

fn quantile(part: f64, seen: &Histogram) -> Nanos {
    if seen.count() < ENOUGH { Nanos(0) } else { seen.quantile(part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_a_thousand_is_late_and_ten_times_as_many_may_be() {
        let mut seen = Histogram::new();
        (1..1000).for_each(|latency| seen.record(Nanos(latency)));
        assert_eq!((late(None, &seen), suspicious(None, &seen)), (Nanos(0), Nanos(0)));
        (1..=1001).for_each(|latency| seen.record(Nanos(latency)));
        assert_eq!((late(None, &seen), suspicious(None, &seen)), (Nanos(999), Nanos(990)));
        let asked = Some(Nanos(5));
        assert_eq!((late(asked, &seen), suspicious(asked, &seen)), (Nanos(5), Nanos(5)));
    }
}
