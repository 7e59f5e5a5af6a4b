//! The ticks of the kernel, and where they lie in a call.

use super::Offset;
use crate::time::Nanos;

/// The ticks of a CPU: one in each period, on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    one: Nanos,
    period: Nanos,
}

/// Time from a tick to the start of a call: the interrupt of the tick and its softirqs are done.
const AFTER_TICK: Nanos = Nanos::from_micros(200);
/// The interrupt of a tick may come this much before its time in the call.
const EARLY: Nanos = Nanos::from_micros(1);
/// The interrupt of a tick ends within this time.
const HANDLED: Nanos = Nanos::from_micros(20);

impl Ticks {
    /// Returns the ticks of this period that come shortly before these moments. Some moments may be
    /// late. None without a moment or a period.
    pub fn before(seen: &[Nanos], period: Nanos) -> Option<Ticks> {
        let first = *seen.first().filter(|_| period > Nanos(0))?;
        // The phases relative to the first, which may itself be late.
        let half = period.0 / 2;
        let phase = |seen: &Nanos| (seen.0 + half + period.0 - first.0 % period.0) % period.0;
        let least = seen.iter().map(phase).min()?;
        Some(Ticks { one: Nanos((first.0 + least).saturating_sub(half)), period })
    }

    /// Returns the first moment from `earliest` on at which a call starts that is interrupted at
    /// `offset`: shortly after a tick, so that a short call contains none, and a long one contains
    /// them at the same offsets each time; half a period later if a tick would come at `offset`.
    pub fn next_start(self, earliest: Nanos, offset: Offset) -> Nanos {
        let later = if self.is_at_tick(offset) { self.period.0 / 2 } else { 0 };
        let start = Nanos((self.one.0 + AFTER_TICK.0 + later) % self.period.0);
        let periods = (earliest - start).0.div_ceil(self.period.0);
        start + Nanos(periods * self.period.0)
    }

    /// Whether a tick comes at this moment of a call that starts shortly after a tick.
    fn is_at_tick(self, offset: Offset) -> bool {
        let [period, after, early] =
            [self.period, AFTER_TICK, EARLY].map(|time| i64::try_from(time.0).unwrap_or(i64::MAX));
        (offset + after + early).rem_euclid(period).unsigned_abs() < (EARLY + HANDLED).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = Nanos::from_millis(4);

    #[test]
    fn ticks_are_those_of_the_earliest_phase() {
        let seen = [1_030_000, 5_010_000, 13_900_000].map(Nanos);
        let ticks = Ticks::before(&seen, PERIOD).expect("ticks were seen");
        let next = |earliest| ticks.next_start(Nanos(earliest), 0);
        assert_eq!(next(100_000_000), Nanos(101_210_000));
        assert_eq!(next(101_210_000), Nanos(101_210_000));
        assert_eq!(next(101_210_001), Nanos(105_210_000));
        assert_eq!(Ticks::before(&[], PERIOD), None);
        assert_eq!(Ticks::before(&seen, Nanos(0)), None);
    }

    #[test]
    fn call_starts_half_a_period_later_if_a_tick_would_come_at_the_offset() {
        let ticks = Ticks { one: Nanos(0), period: PERIOD };
        let start = |offset| ticks.next_start(Nanos(0), offset);
        let at = [3_799_001, 3_800_000, 3_819_999, 7_800_000, -200_000];
        assert!(at.iter().all(|at| start(*at) == Nanos(2_200_000)));
        let between = [0, 3_798_999, 3_820_000, -100_000];
        assert!(between.iter().all(|at| start(*at) == Nanos(200_000)));
    }
}
