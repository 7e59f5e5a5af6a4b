//! Arithmetic of periodic wake-ups: latency and missed periods.

use crate::time::Nanos;

/// One wake-up, compared with the time it was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// Its latency; 0 if it was early.
    pub latency: Nanos,
    /// Whether it was early, which only happens with a faulty clock or timer.
    pub early: bool,
    /// Number of whole periods that passed without a sample after the one that was due.
    pub missed: u64,
    /// When the next wake-up is due: a whole number of periods later, never re-phased.
    pub next: Nanos,
}

/// Compares a wake-up at `now` with the time `due`, in a series with one wake-up per `interval`.
///
/// A thread that wakes late records one sample *and* counts each period whose wake-up it missed, so
/// that recorded + missed is always the number of periods that passed (coordinated omission: G.
/// Tene, `HdrHistogram`). `interval` is at least 1 ns.
#[inline]
pub fn judge(due: Nanos, interval: Nanos, now: Nanos) -> Wakeup {
    let latency = now.0.saturating_sub(due.0);
    // The common case needs no division.
    let missed = if latency < interval.0 { 0 } else { latency / interval.0 };
    Wakeup {
        latency: Nanos(latency),
        early: now < due,
        missed,
        next: Nanos(due.0 + (missed + 1) * interval.0),
    }
}

/// Compares the end of a relative sleep with the time `due`, where timers have this `resolution`.
///
/// A sleep ends at the first tick after `due`, up to a tick later. If the interval is as long as a
/// tick, that is late, but no period was missed. Otherwise it is [`judge`].
#[inline]
pub fn judge_sleep(due: Nanos, interval: Nanos, now: Nanos, resolution: Nanos) -> Wakeup {
    let wakeup = judge(due, interval, now);
    // The thread runs within a fraction of a tick after it.
    let at_next_tick = wakeup.latency.0 < resolution.0 + resolution.0 / 2;
    if resolution > interval || !at_next_tick {
        return wakeup;
    }
    Wakeup { missed: 0, next: due + interval, ..wakeup }
}

/// The due time of the wake-up after `now`, in a series whose clock was set back, so that the
/// wake-up at `due` is several periods away. It is a whole number of periods before `due`, and at
/// most one period from `now`.
pub fn after_set_back(due: Nanos, interval: Nanos, now: Nanos) -> Nanos {
    let away = due.0.saturating_sub(now.0);
    let whole = away.saturating_sub(1) / interval.0;
    Nanos(due.0 - whole * interval.0)
}

/// Whether a measurement of this `length` goes on, where its clock can be set. `is_within`: it has
/// not reached its end by that clock. `passed`: the time since its begin by `CLOCK_MONOTONIC`,
/// which decides if the two clocks differ by more than a period.
pub fn goes_on(is_within: bool, passed: Nanos, length: Nanos, interval: Nanos) -> bool {
    if passed + interval < length {
        return true;
    }
    is_within && passed <= length + interval
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sleep_to_the_next_tick_misses_nothing() {
        let tick = Nanos::from_millis(4);
        let judged = |late, resolution| {
            let wakeup = judge_sleep(Nanos(0), tick, Nanos(late), resolution);
            (wakeup.missed, wakeup.next, wakeup.latency)
        };
        for late in [3_990_000, 4_000_000, 4_100_000, 5_999_999] {
            assert_eq!(judged(late, tick), (0, tick, Nanos(late)));
        }
        assert_eq!(judged(8_000_500, tick).0, 2);
        assert_eq!(judged(4_100_000, Nanos(1)).0, 1, "a fine timer has no ticks");
        assert_eq!(judged(4_100_000, Nanos::from_millis(10)).0, 1, "a tick is several periods");
    }

    #[test]
    fn judge_counts_periods_missed_in_a_stall() {
        let wakeup = judge(Nanos(0), Nanos::from_millis(1), Nanos(500_300_000));
        assert_eq!((wakeup.missed, wakeup.next), (500, Nanos(501_000_000)));
    }

    #[test]
    fn clock_set_back_gives_the_next_wake_up_within_a_period() {
        let ms = Nanos::from_millis;
        let hour = Nanos::from_secs(3_600);
        assert_eq!(after_set_back(hour + ms(7), ms(1), ms(6)), ms(7));
        assert_eq!(after_set_back(hour + ms(7), ms(1), ms(6) + Nanos(1)), ms(7));
        assert_eq!(after_set_back(hour + ms(7), ms(1), ms(7)), ms(8));
        assert_eq!(after_set_back(ms(7), ms(1), ms(7)), ms(7), "it is due");
        assert_eq!(after_set_back(ms(7), ms(1), ms(9)), ms(7), "it is late");
    }

    #[test]
    fn measurement_ends_by_the_monotonic_clock_where_the_other_was_set() {
        let (length, interval) = (Nanos::from_secs(3), Nanos::from_millis(1));
        let at =
            |is_within, passed| goes_on(is_within, Nanos::from_millis(passed), length, interval);
        assert!(at(true, 3_000) && at(true, 3_001), "the last wake-up is a little late");
        assert!(!at(false, 3_000) && !at(false, 2_999));
        assert!(at(false, 500), "it was set ahead");
        assert!(!at(true, 3_002), "it was set back");
    }

    proptest! {
        #[test]
        fn recorded_and_missed_add_up_to_periods_that_passed(
            interval in 1u64..10_000_000,
            delays in proptest::collection::vec(0u64..100_000_000, 1..50),
        ) {
            let (mut due, mut recorded, mut missed) = (Nanos(interval), 0, 0);
            let mut now = Nanos(0);
            for delay in delays {
                now = Nanos(due.0.max(now.0) + delay);
                let wakeup = judge(due, Nanos(interval), now);
                prop_assert!(wakeup.next > now, "the next period is in the future");
                recorded += 1;
                missed += wakeup.missed;
                due = wakeup.next;
            }
            prop_assert_eq!(recorded + missed, now.0 / interval);
        }
    }
}
