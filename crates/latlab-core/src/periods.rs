//! The arithmetic of a periodic wake-up: how late it was, and which periods it slept through.

use crate::time::Nanos;

/// One wake-up, judged against the time it was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// How late it was; 0 where the clock says it came early.
    pub latency: Nanos,
    /// Whether it came before it was due, which only a faulty clock or timer does.
    pub early: bool,
    /// How many whole periods passed unseen after the one that was due.
    pub missed: u64,
    /// When the next wake-up is due: never re-phased, always a whole number of periods on.
    pub next: Nanos,
}

/// Judges a wake-up that was due at `due`, every `interval`, and came at `now`.
///
/// A thread that wakes late records that one sample *and* counts each period whose wake-up it
/// could not take, so that recorded + missed is always the number of periods that passed
/// (coordinated omission: G. Tene, `HdrHistogram`). `interval` is at least 1 ns.
#[inline]
pub fn judge(due: Nanos, interval: Nanos, now: Nanos) -> Wakeup {
    let latency = now.0.saturating_sub(due.0);
    // The common case has no division in it.
    let missed = if latency < interval.0 { 0 } else { latency / interval.0 };
    Wakeup {
        latency: Nanos(latency),
        early: now < due,
        missed,
        next: Nanos(due.0 + (missed + 1) * interval.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stall_of_half_a_second_misses_five_hundred_periods() {
        let wakeup = judge(Nanos(0), Nanos::from_millis(1), Nanos(500_300_000));
        assert_eq!((wakeup.missed, wakeup.next), (500, Nanos(501_000_000)));
    }

    proptest! {
        #[test]
        fn recorded_and_missed_are_the_periods_that_passed(
            interval in 1u64..10_000_000,
            delays in proptest::collection::vec(0u64..100_000_000, 1..50),
        ) {
            let (mut due, mut recorded, mut missed) = (Nanos(interval), 0, 0);
            let mut now = Nanos(0);
            for delay in delays {
                now = Nanos(due.0.max(now.0) + delay);
                let wakeup = judge(due, Nanos(interval), now);
                prop_assert!(wakeup.next > now, "the next period lies ahead");
                recorded += 1;
                missed += wakeup.missed;
                due = wakeup.next;
            }
            prop_assert_eq!(recorded + missed, now.0 / interval);
        }
    }
}
