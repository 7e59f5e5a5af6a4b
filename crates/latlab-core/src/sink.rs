//! A device that plays samples by the clock, as its feeder sees it: how far it is, when it has room,
//! and when it has run dry.

use crate::time::Nanos;
use std::sync::atomic::{
    AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};

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

    /// Gives it samples at `now`. For how long it was silent before.
    pub fn write(&mut self, samples: u64, now: Nanos) -> Nanos {
        let silent = now - self.playing().dry;
        self.written += samples;
        self.origin = self.origin + silent;
        silent
    }

    /// The same of a device that has a clock of its own, and says at `now` how many samples it has
    /// yet to play. By how much it fell behind.
    pub fn written(&mut self, samples: u64, left: u64, now: Nanos) -> Nanos {
        self.written += samples;
        let origin = now + self.time_of(left) - self.time_of(self.written);
        let behind = origin - self.origin;
        self.origin = origin;
        behind
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

/// What a sink is playing, told by who feeds it to who wants to know. Neither ever waits.
#[derive(Debug, Default)]
pub struct Published {
    /// How often it was told, and so which of the places has the last.
    told: AtomicU64,
    places: [[AtomicU64; 2]; 2],
}

impl Published {
    /// Tells it. Only one may do so.
    #[inline]
    pub fn publish(&self, playing: Playing) {
        let next = self.told.load(Relaxed) + 1;
        fence(Release);
        let [origin, dry] = self.place(next);
        origin.store(playing.origin.0, Relaxed);
        dry.store(playing.dry.0, Relaxed);
        self.told.store(next, Release);
    }

    /// What was told last.
    #[inline]
    pub fn get(&self) -> Playing {
        loop {
            let told = self.told.load(Acquire);
            let [origin, dry] = self.place(told);
            let playing =
                Playing { origin: Nanos(origin.load(Relaxed)), dry: Nanos(dry.load(Relaxed)) };
            fence(Acquire);
            // What is told next goes to the other place.
            if self.told.load(Relaxed) == told {
                return playing;
            }
        }
    }

    fn place(&self, told: u64) -> &[AtomicU64; 2] {
        &self.places[usize::from(!told.is_multiple_of(2))]
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
        assert_eq!(sink.write(10, Nanos::from_millis(20)), Nanos(0));
        assert_eq!(sink.playing(), Playing { origin: Nanos(0), dry: Nanos::from_millis(30) });
        assert_eq!(sink.playing().position(Nanos::from_millis(7)), Nanos::from_millis(7));
    }

    #[test]
    fn silence_moves_all_that_follows() {
        let mut sink = Sink::full(1_000, 20, Nanos(0));
        let stalled = sink.playing().position(Nanos::from_millis(25));
        assert_eq!(stalled, Nanos::from_millis(20));
        assert_eq!(sink.write(10, Nanos::from_millis(25)), Nanos::from_millis(5));
        assert_eq!(sink.playing().position(Nanos::from_millis(26)), Nanos::from_millis(21));
        assert_eq!(sink.room_for(10), Nanos::from_millis(25));
    }

    #[test]
    fn what_was_published_last_is_known() {
        let published = Published::default();
        assert_eq!(published.get(), Playing::default());
        for n in 1..5 {
            let playing = Playing { origin: Nanos(n), dry: Nanos(10 * n) };
            published.publish(playing);
            assert_eq!(published.get(), playing);
        }
    }

    #[test]
    fn a_device_with_a_clock_of_its_own_is_believed() {
        let mut sink = Sink::full(1_000, 20, Nanos::from_millis(100));
        let now = Nanos::from_millis(112);
        assert_eq!(sink.written(10, 19, now), Nanos::from_millis(1));
        assert_eq!(sink.playing().position(now), Nanos::from_millis(11));
        assert_eq!(sink.playing().dry, Nanos::from_millis(131));
    }

    proptest! {
        #[test]
        fn time_is_played_or_silent(lates in proptest::collection::vec(0u64..60_000_000, 1..50)) {
            let mut sink = Sink::full(48_000, 2_048, Nanos(0));
            let (mut silent, mut now) = (Nanos(0), Nanos(0));
            for late in lates {
                now = now.max(sink.room_for(1_024)) + Nanos(late);
                silent = silent + sink.write(1_024, now);
                prop_assert_eq!(sink.playing().position(now) + silent, now);
            }
        }
    }
}
