//! From which latency on a wake-up is late, where the user has not said so.

use crate::histogram::Histogram;
use crate::time::Nanos;

/// So many wake-ups are needed to say which of them are the worst.
const ENOUGH: u64 = 1000;

/// One of so many is late, and so many are at least, that there is something to explain.
const LATE: (u64, u64) = (1000, 10);

/// One of so many may be late in the end, and so many at least.
const SUSPICIOUS: (u64, u64) = (100, 100);

/// The latency above which wake-ups are late: what was asked for, or what one of a thousand of
/// those seen exceeds, but at least ten.
pub fn late(asked: Option<Nanos>, seen: &Histogram) -> Nanos {
    asked.unwrap_or_else(|| exceeded(LATE, seen))
}

/// The latency above which wake-ups are to be watched, because they may be late in the end: what
/// is late changes while a run goes on. Until that can be told, it is `before`.
pub fn suspicious(asked: Option<Nanos>, seen: &Histogram, before: Nanos) -> Nanos {
    let known = || if seen.count() < ENOUGH { before } else { exceeded(SUSPICIOUS, seen) };
    asked.unwrap_or_else(known)
}

/// What one of so many exceeds, and so many at least.
#[expect(clippy::cast_precision_loss, reason = "no run has 2^52 samples")]
fn exceeded((one_of, least): (u64, u64), seen: &Histogram) -> Nanos {
    let count = seen.count();
    let exceeding = (count / one_of).max(least);
    if exceeding >= count {
        return Nanos(0);
    }
    // The middle of the last one's place, so that rounding does not take the next.
    seen.quantile(((count - exceeding) as f64 - 0.5) / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(count: u64) -> Histogram {
        let mut seen = Histogram::new();
        (1..=count).for_each(|latency| seen.record(Nanos(latency)));
        seen
    }

    #[test]
    fn one_of_a_thousand_is_late_but_at_least_ten() {
        let above = [9, 11, 1000, 2000].map(|count| late(None, &seen(count)).0);
        assert_eq!(above, [0, 1, 990, 1990]);
        assert_eq!(late(Some(Nanos(5)), &seen(2000)), Nanos(5));
    }

    #[test]
    fn more_are_watched_than_will_be_late() {
        let before = Nanos(7);
        let above = [999, 1000, 2000].map(|count| suspicious(None, &seen(count), before).0);
        assert_eq!(above, [7, 900, 1900]);
        assert_eq!(suspicious(Some(Nanos(5)), &seen(10), before), Nanos(5));
    }
}
