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
/// the threshold may be lower. All are watched until there are enough to estimate it.
pub fn watch_above(seen: &Histogram) -> Nanos {
    if seen.count() < ENOUGH { Nanos(0) } else { exceeded(SUSPICIOUS, seen) }
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

/// A latency that one in `one_of` wake-ups exceeds, but at least `least` of them. It lies just
/// below the bucket of the shortest of these, so that none in that bucket drops out.
fn exceeded((one_of, least): (u64, u64), seen: &Histogram) -> Nanos {
    let count = seen.count();
    let exceeding = (count / one_of).max(least);
    let (mut above, mut threshold) = (count, Nanos(0));
    for bucket in seen.buckets() {
        if above < exceeding {
            break;
        }
        threshold = Nanos(bucket.from.0.saturating_sub(1));
        above -= bucket.count;
    }
    threshold
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

    /// From 2 us on, buckets are wider than a nanosecond.
    #[test]
    fn wake_ups_in_the_bucket_of_the_tenth_are_late() {
        let mut seen = Histogram::new();
        (0..150).for_each(|nth| seen.record(Nanos(5_000 + nth % 2)));
        assert_eq!(seen.buckets().count(), 1);
        assert!(late_above(&seen) < Nanos(5_000));
        (0..5).for_each(|_| seen.record(Nanos(9_000)));
        let above = late_above(&seen);
        assert!(above < Nanos(5_000) && seen.count_above(above) == 155, "{above}");
    }

    #[test]
    fn suspicious_is_below_late() {
        let above = [999, 1000, 2000].map(|count| watch_above(&seen(count)).0);
        assert_eq!(above, [0, 900, 1900]);
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
