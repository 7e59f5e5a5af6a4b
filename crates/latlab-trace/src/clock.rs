//! Times of timers, on the clock of the trace.

use latlab_core::time::Nanos;
use std::collections::HashMap;

/// Most timers that are kept: more are started and never expire only where the end of the trace is missing.
const MOST: usize = 1 << 17;
/// Offsets that differ by less belong to the same clock.
const SAME: i64 = 1_000_000_000;
/// Time for which the least offset counts, as clocks drift.
const EPOCH: Nanos = Nanos::from_secs(1);

/// When a timer was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// Without the slack: what the task asked for.
    pub(crate) due: Nanos,
    /// With the slack.
    pub(crate) expiry: Nanos,
}

/// The timers that were started, and the offsets of their clocks.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// Expiry and due time, on the timer's clock.
    started: HashMap<u64, Expiry>,
    offsets: Vec<Offset>,
}

/// Offset of the clock of the trace from a clock of timers.
#[derive(Debug)]
struct Offset {
    /// The least in this epoch, and in the one before.
    least: [i64; 2],
    since: Nanos,
}

impl Timers {
    /// A timer is started.
    pub(crate) fn start(&mut self, timer: u64, expiry: Nanos, due: Nanos) {
        if self.started.len() < MOST || self.started.contains_key(&timer) {
            self.started.insert(timer, Expiry { due, expiry });
        }
    }

    /// A timer expires at this time of the trace, in an interrupt or softirq that read `now` on the timer's clock
    /// when it began. Returns when the timer was due on the clock of the trace; none if its start was not seen.
    pub(crate) fn expire(&mut self, timer: u64, now: Nanos, at: Nanos) -> Option<Expiry> {
        let began = self.translate(now, at);
        let Expiry { due, expiry } = self.started.remove(&timer)?;
        Some(Expiry { due: began - (now - due), expiry: began - (now - expiry) })
    }

    /// The time of a clock on the clock of the trace, which was read at most a little before `at`. The least offset
    /// so far is nearest to the true one.
    fn translate(&mut self, now: Nanos, at: Nanos) -> Nanos {
        let signed = |time: Nanos| i64::try_from(time.0).unwrap_or(i64::MAX);
        let offset = signed(at).saturating_sub(signed(now));
        let is_same = |one: &Offset| {
            one.least.iter().any(|least| least.saturating_sub(offset).saturating_abs() < SAME)
        };
        let known = self.offsets.iter().position(is_same);
        let place = known.unwrap_or_else(|| {
            // A clock that was set often leaves many offsets behind.
            self.offsets.truncate(15);
            self.offsets.insert(0, Offset { least: [offset; 2], since: at });
            0
        });
        let known = &mut self.offsets[place];
        if at - known.since > EPOCH {
            (known.least, known.since) = ([offset, known.least[0]], at);
        }
        known.least[0] = known.least[0].min(offset);
        let least = known.least[0].min(known.least[1]);
        now.0.checked_add_signed(least).map_or(at, Nanos).min(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock of the trace that is 5 s behind that of timers, whose events come this much after the expiry.
    fn expire(timers: &mut Timers, due: u64, late: u64, event: u64) -> u64 {
        timers.start(1, Nanos(due), Nanos(due));
        let now = Nanos(due + late);
        let at = Nanos(due + late + event - 5_000_000_000);
        timers.expire(1, now, at).expect("it was started").due.0
    }

    #[test]
    fn due_time_is_on_the_clock_of_the_trace() {
        let mut timers = Timers::default();
        let due = 9_000_000_000;
        assert_eq!(expire(&mut timers, due, 100, 700), due - 5_000_000_000 + 700);
        // A prompter event shows that the offset is less.
        assert_eq!(expire(&mut timers, due + 1_000, 100, 30), due - 5_000_000_000 + 1_030);
        assert_eq!(expire(&mut timers, due + 2_000, 100, 700), due - 5_000_000_000 + 2_030);
        assert_eq!(timers.expire(1, Nanos(1), Nanos(2)), None, "it was not started again");
    }

    #[test]
    fn slack_is_between_due_time_and_expiry() {
        let mut timers = Timers::default();
        timers.start(1, Nanos(150), Nanos(100));
        let found = timers.expire(1, Nanos(160), Nanos(1_160));
        assert_eq!(found, Some(Expiry { due: Nanos(1_100), expiry: Nanos(1_150) }));
    }
}
