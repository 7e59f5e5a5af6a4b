//! Queue of samples from a measuring thread to the explaining thread.

use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Capacity in samples: more than one second's at the shortest periods in use.
const CAPACITY: usize = 1 << 16;

/// A queue with one writer, which never waits and never allocates, and one reader.
#[derive(Debug)]
pub struct Feed {
    /// The time and the latency of each sample.
    slots: Box<[(AtomicU64, AtomicU64)]>,
    written: AtomicU64,
    read: AtomicU64,
    lost: AtomicU64,
    origin: AtomicU64,
}

impl Default for Feed {
    fn default() -> Feed {
        Feed::new()
    }
}

impl Feed {
    /// Creates an empty queue and allocates all of its memory, 1 MiB.
    pub fn new() -> Feed {
        Feed {
            slots: (0..CAPACITY).map(|_| Default::default()).collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            origin: AtomicU64::new(0),
        }
    }

    /// Sets the time at which counting began. Must be called before the first sample.
    pub fn begin(&self, origin: Nanos) {
        self.origin.store(origin.0, Release);
    }

    /// Returns the time at which counting began.
    pub fn origin(&self) -> Nanos {
        Nanos(self.origin.load(Acquire))
    }

    /// Adds a sample: the time at which it was taken, and its latency. If the queue is full, the
    /// sample is lost and counted as such. Only one thread may call this.
    #[inline]
    pub fn put(&self, at: Nanos, latency: Nanos) {
        let written = self.written.load(Relaxed);
        if written - self.read.load(Acquire) == CAPACITY as u64 {
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        let slot = self.slot(written);
        slot.0.store(at.0, Relaxed);
        slot.1.store(latency.0, Relaxed);
        self.written.store(written + 1, Release);
    }

    /// Takes all samples out of the queue and passes the time and the latency of each one to
    /// `each`. Only one thread may call this.
    pub fn take(&self, mut each: impl FnMut(Nanos, Nanos)) {
        let (read, written) = (self.read.load(Relaxed), self.written.load(Acquire));
        for index in read..written {
            let (at, latency) = self.slot(index);
            each(Nanos(at.load(Relaxed)), Nanos(latency.load(Relaxed)));
        }
        self.read.store(written, Release);
    }

    /// Returns the number of lost samples.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below 65536")]
    fn slot(&self, index: u64) -> &(AtomicU64, AtomicU64) {
        &self.slots[index as usize % CAPACITY]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feed_returns_samples_in_order() {
        let feed = Feed::new();
        let mut next = 0;
        for samples in [3, 0, CAPACITY as u64, 1, 40_000, 40_000] {
            (next..next + samples).for_each(|n| feed.put(Nanos(n), Nanos(2 * n)));
            let mut taken = Vec::new();
            feed.take(|at, latency| taken.push((at.0, latency.0)));
            assert_eq!(taken, (next..next + samples).map(|n| (n, 2 * n)).collect::<Vec<_>>());
            next += samples;
        }
        assert_eq!(feed.lost(), 0);
    }

    #[test]
    fn feed_counts_lost_samples() {
        let feed = Feed::new();
        (0..CAPACITY as u64 + 3).for_each(|n| feed.put(Nanos(n), Nanos(0)));
        assert_eq!(feed.lost(), 3);
        let mut taken = 0;
        feed.take(|_, _| taken += 1);
        assert_eq!(taken, CAPACITY);
    }
}
