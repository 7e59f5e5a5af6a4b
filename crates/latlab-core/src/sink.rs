//! A device that plays samples by the clock, as its feeder sees it: how far it is, when it has room,
//! and when it has run dry.

use crate::time::Nanos;

/// An audio device with a buffer. It plays as long as it has samples; without any it is silent,
/// and goes on when the next ones come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sink {
    /// Samples a second.
    rate: u64,
    /// How many samples its buffer holds.
    capacity: u64,
    /// How many it was ever given.
    written: u64,
    /// When the first would have been played, had it never been silent since.
    origin: Nanos,
}

/// What a sink is playing, between two writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Playing {
    /// When what it plays would have begun, had it never been silent.
    pub origin: Nanos,
    /// When it runs dry.
    pub dry: Nanos,
}

impl Playing {
    /// How much it has played at `now`.
    pub fn position(self, now: Nanos) -> Nanos {
        now.min(self.dry) - self.origin
    }
}

impl Sink {
    /// One that begins at `now`, with its buffer full. Neither may be 0.
    pub fn full(rate: u64, capacity: u64, now: Nanos) -> Sink {
        Sink { rate, capacity, written: capacity, origin: now }
    }

    /// When there is room for so many more samples.
    pub fn room_for(&self, samples: u64) -> Nanos {
        self.origin + self.time_of((self.written + samples).saturating_sub(self.capacity))
    }

    /// Gives it samples at `now`. For how long it was silent before, if it had run dry.
    pub fn write(&mut self, samples: u64, now: Nanos) -> Option<Nanos> {
        let dry = self.playing().dry;
        self.written += samples;
        if now <= dry {
            return None;
        }
        self.origin = self.origin + (now - dry);
        Some(now - dry)
    }

    /// What it is playing until the next write.
    pub fn playing(&self) -> Playing {
        Playing { origin: self.origin, dry: self.origin + self.time_of(self.written) }
    }

    fn time_of(&self, samples: u64) -> Nanos {
        let nanos = u128::from(samples) * 1_000_000_000 / u128::from(self.rate);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn who_writes_in_time_is_never_heard() {
        let mut sink = Sink::full(1_000, 20, Nanos(0));
        assert_eq!(sink.room_for(10), Nanos::from_millis(10));
        assert_eq!(sink.write(10, Nanos::from_millis(20)), None);
        assert_eq!(sink.playing(), Playing { origin: Nanos(0), dry: Nanos::from_millis(30) });
        assert_eq!(sink.playing().position(Nanos::from_millis(7)), Nanos::from_millis(7));
    }

    #[test]
    fn silence_moves_all_that_follows() {
        let mut sink = Sink::full(1_000, 20, Nanos(0));
        let stalled = sink.playing().position(Nanos::from_millis(25));
        assert_eq!(stalled, Nanos::from_millis(20));
        assert_eq!(sink.write(10, Nanos::from_millis(25)), Some(Nanos::from_millis(5)));
        assert_eq!(sink.playing().position(Nanos::from_millis(26)), Nanos::from_millis(21));
        assert_eq!(sink.room_for(10), Nanos::from_millis(25));
    }

    proptest! {
        #[test]
        fn time_is_played_or_silent(lates in proptest::collection::vec(0u64..60_000_000, 1..50)) {
            let mut sink = Sink::full(48_000, 2_048, Nanos(0));
            let (mut silent, mut now) = (Nanos(0), Nanos(0));
            for late in lates {
                now = now.max(sink.room_for(1_024)) + Nanos(late);
                silent = silent + sink.write(1_024, now).unwrap_or_default();
                prop_assert_eq!(sink.playing().position(now) + silent, now);
            }
        }
    }
}
