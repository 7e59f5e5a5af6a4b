//! An audio device that plays samples at a constant rate, as seen by its writer: its position, when
//! it has room, and when it underruns.

use crate::time::Nanos;
use std::sync::atomic::{
    AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence,
};

/// An audio device with a buffer. It plays while it has samples, is silent during an underrun, and
/// continues with the next samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sink {
    /// Samples per second.
    rate: u64,
    /// Size of the buffer in samples.
    capacity: u64,
    /// Number of samples ever written.
    written: u64,
    /// When playing would have begun without underruns since.
    origin: Nanos,
}

/// State of a sink between two writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Playing {
    /// When playing would have begun without underruns.
    pub origin: Nanos,
    /// When the buffer underruns.
    pub dry: Nanos,
}

impl Playing {
    /// Returns how much has been played at `now`.
    pub fn position(self, now: Nanos) -> Nanos {
        now.min(self.dry) - self.origin
    }
}

impl Sink {
    /// Returns a sink that starts at `now` with a full buffer. `rate` and `capacity` must not be 0.
    pub fn full(rate: u64, capacity: u64, now: Nanos) -> Sink {
        Sink { rate, capacity, written: capacity, origin: now }
    }

    /// Returns when there is room for this many more samples.
    pub fn room_for(&self, samples: u64) -> Nanos {
        self.origin + self.time_of((self.written + samples).saturating_sub(self.capacity))
    }

    /// Writes samples at `now`, and returns the length of the underrun before.
    pub fn write(&mut self, samples: u64, now: Nanos) -> Nanos {
        let silent = now - self.playing().dry;
        self.written += samples;
        self.origin = self.origin + silent;
        silent
    }

    /// The same for a device with its own clock, which reports at `now` how many samples are left
    /// to play; returns by how much it fell behind.
    pub fn written(&mut self, samples: u64, left: u64, now: Nanos) -> Nanos {
        self.written += samples;
        let origin = now + self.time_of(left) - self.time_of(self.written);
        let behind = origin - self.origin;
        self.origin = origin;
        behind
    }

    /// Returns the state until the next write.
    pub fn playing(&self) -> Playing {
        Playing { origin: self.origin, dry: self.origin + self.time_of(self.written) }
    }

    fn time_of(&self, samples: u64) -> Nanos {
        let nanos = u128::from(samples) * 1_000_000_000 / u128::from(self.rate);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// State of a sink, published by its writer to one or more readers, without locks.
#[derive(Debug, Default)]
pub struct Published {
    /// Number of publications; its parity selects the slot of the latest.
    count: AtomicU64,
    slots: [[AtomicU64; 2]; 2],
}

impl Published {
    /// Publishes a state. Only one thread may call it.
    #[inline]
    pub fn publish(&self, playing: Playing) {
        let next = self.count.load(Relaxed) + 1;
        fence(Release);
        let [origin, dry] = self.slot(next);
        origin.store(playing.origin.0, Relaxed);
        dry.store(playing.dry.0, Relaxed);
        self.count.store(next, Release);
    }

    /// Returns the latest state.
    #[inline]
    pub fn get(&self) -> Playing {
        loop {
            let count = self.count.load(Acquire);
            let [origin, dry] = self.slot(count);
            let playing =
                Playing { origin: Nanos(origin.load(Relaxed)), dry: Nanos(dry.load(Relaxed)) };
            fence(Acquire);
            // The next publication goes to the other slot.
            if self.count.load(Relaxed) == count {
                return playing;
            }
        }
    }

    fn slot(&self, count: u64) -> &[AtomicU64; 2] {
        &self.slots[usize::from(!count.is_multiple_of(2))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writing_in_time_causes_no_underrun() {
        let mut sink = Sink::full(1_000, 20, Nanos(0));
        assert_eq!(sink.room_for(10), Nanos::from_millis(10));
        assert_eq!(sink.write(10, Nanos::from_millis(20)), Nanos(0));
        assert_eq!(sink.playing(), Playing { origin: Nanos(0), dry: Nanos::from_millis(30) });
        assert_eq!(sink.playing().position(Nanos::from_millis(7)), Nanos::from_millis(7));
    }

    #[test]
    fn underrun_delays_all_later_samples() {
        let mut sink = Sink::full(1_000, 20, Nanos(0));
        let stalled = sink.playing().position(Nanos::from_millis(25));
        assert_eq!(stalled, Nanos::from_millis(20));
        assert_eq!(sink.write(10, Nanos::from_millis(25)), Nanos::from_millis(5));
        assert_eq!(sink.playing().position(Nanos::from_millis(26)), Nanos::from_millis(21));
        assert_eq!(sink.room_for(10), Nanos::from_millis(25));
    }

    #[test]
    fn latest_published_state_is_read() {
        let published = Published::default();
        assert_eq!(published.get(), Playing::default());
        for n in 1..5 {
            let playing = Playing { origin: Nanos(n), dry: Nanos(10 * n) };
            published.publish(playing);
            assert_eq!(published.get(), playing);
        }
    }

    #[test]
    fn device_with_its_own_clock_determines_the_position() {
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
