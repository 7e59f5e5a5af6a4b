//! From which latency on a wake-up is late, where the user has not said so.

use crate::histogram::Histogram;
use crate::time::Nanos;

/// So many wake-ups are needed to say which of them are the worst.
const ENOUGH: u64 = 1000;

/// One of so many is late, and so many are at least, that there is something to explain.
const LATE: (u64, u64) = (1000, 10);

/// One of so many may be late in the end, and so many at least.
const SUSPICIOUS: (u64, u64) = (100, 100);

/// How often it is asked what is suspicious: to look through all that was seen takes time from the
/// machine that is measured.
const PACE: Nanos = Nanos::from_millis(500);

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

/// When it was last asked what is suspicious.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    at: Nanos,
    count: u64,
}

impl Asked {
    /// Whether to ask again, now that so many wake-ups were seen: as soon as it can be told, then
    /// twice a second, and earlier where twice as many were seen, as the answer may be another then.
    pub fn again(&mut self, now: Nanos, count: u64) -> bool {
        let again = count >= ENOUGH && (count >= 2 * self.count || now - self.at >= PACE);
        if again {
            *self = Asked { at: now, count };
        }
        again
    }
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

    #[test]
    fn it_is_asked_at_once_when_it_can_be_told_and_then_twice_a_second() {
        let mut asked = Asked::default();
        let moments = [(0, 0), (900, 999), (901, 1000), (902, 1999), (903, 2000)];
        let later = [(1402, 3999), (1403, 2001), (1404, 2002)];
        let again = moments.into_iter().chain(later);
        let again = again.map(|(ms, count)| asked.again(Nanos::from_millis(ms), count));
        let expected = [false, false, true, false, true, false, true, false];
        assert_eq!(again.collect::<Vec<_>>(), expected);
    }
}
