//! Threshold above which a wake-up is late, where the user gives none.

use crate::histogram::Histogram;
use crate::time::Nanos;

/// Minimum number of wake-ups from which the threshold can be estimated.
const ENOUGH: u64 = 1000;

/// One in this many wake-ups is late, and at least this many, so that there are some to explain.
const LATE: (u64, u64) = (1000, 10);

/// One in this many wake-ups is watched as it may be late in the end, and at least this many.
const SUSPICIOUS: (u64, u64) = (100, 100);

/// Interval between updates of the threshold above which wake-ups are watched: an update takes time
/// on the machine that is measured.
const PACE: Nanos = Nanos::from_millis(500);

/// Returns the latency above which wake-ups are late: one in a thousand wake-ups, but at least ten,
/// exceed it.
pub fn late_above(seen: &Histogram) -> Nanos {
    exceeded(LATE, seen)
}

/// Returns the latency above which wake-ups are watched because they may be late in the end, when
/// the threshold may be lower. It is `before` until there are enough wake-ups to estimate it.
pub fn watch_above(seen: &Histogram, before: Nanos) -> Nanos {
    if seen.count() < ENOUGH { before } else { exceeded(SUSPICIOUS, seen) }
}

/// The last update of the threshold above which wake-ups are watched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recheck {
    at: Nanos,
    count: u64,
}

impl Recheck {
    /// Whether to update the threshold after `count` wake-ups: as soon as it can be estimated, then
    /// twice a second, and earlier where the number of wake-ups has doubled.
    pub fn is_due(&mut self, now: Nanos, count: u64) -> bool {
        let again = count >= ENOUGH && (count >= 2 * self.count || now - self.at >= PACE);
        if again {
            *self = Recheck { at: now, count };
        }
        again
    }
}

/// The latency that one in `one_of` wake-ups, but at least `least`, exceed.
#[expect(clippy::cast_precision_loss, reason = "no run has 2^52 samples")]
fn exceeded((one_of, least): (u64, u64), seen: &Histogram) -> Nanos {
    let count = seen.count();
    let exceeding = (count / one_of).max(least);
    if exceeding >= count {
        return Nanos(0);
    }
    // The middle of the last rank, so that rounding does not select the next one.
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
    fn late_is_one_in_a_thousand_but_at_least_ten() {
        let above = [9, 11, 1000, 2000].map(|count| late_above(&seen(count)).0);
        assert_eq!(above, [0, 1, 990, 1990]);
    }

    #[test]
    fn suspicious_is_below_late() {
        let before = Nanos(7);
        let above = [999, 1000, 2000].map(|count| watch_above(&seen(count), before).0);
        assert_eq!(above, [7, 900, 1900]);
    }

    #[test]
    fn update_is_due_once_estimable_then_twice_a_second_or_at_double_count() {
        let mut asked = Recheck::default();
        let moments = [(0, 0), (900, 999), (901, 1000), (902, 1999), (903, 2000)];
        let later = [(1402, 3999), (1403, 2001), (1404, 2002)];
        let again = moments.into_iter().chain(later);
        let again = again.map(|(ms, count)| asked.is_due(Nanos::from_millis(ms), count));
        let expected = [false, false, true, false, true, false, true, false];
        assert_eq!(again.collect::<Vec<_>>(), expected);
    }
}
