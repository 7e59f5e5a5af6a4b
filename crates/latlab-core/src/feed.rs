//! Samples on their way from the thread that measures to the one that explains.

use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// How many samples may wait: more than come in a second at the shortest periods that are in use.
const PLACES: usize = 1 << 16;

/// A queue with one writer, who never waits and never allocates, and one reader.
#[derive(Debug)]
pub struct Feed {
    /// The moment of each sample and its latency.
    places: Box<[(AtomicU64, AtomicU64)]>,
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
    /// An empty queue of 1 MiB, all of it allocated now and never again.
    pub fn new() -> Feed {
        Feed {
            places: (0..PLACES).map(|_| Default::default()).collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            origin: AtomicU64::new(0),
        }
    }

    /// Says when counting began. To be called before the first sample.
    pub fn begin(&self, origin: Nanos) {
        self.origin.store(origin.0, Release);
    }

    /// When counting began.
    pub fn origin(&self) -> Nanos {
        Nanos(self.origin.load(Acquire))
    }

    /// Hands over a latency and the moment at which it was seen. One that finds no place is lost,
    /// and counted. Only one thread may call this.
    #[inline]
    pub fn put(&self, at: Nanos, latency: Nanos) {
        let written = self.written.load(Relaxed);
        if written - self.read.load(Acquire) == PLACES as u64 {
            self.lost.fetch_add(1, Relaxed);
            return;
        }
        let place = self.place(written);
        place.0.store(at.0, Relaxed);
        place.1.store(latency.0, Relaxed);
        self.written.store(written + 1, Release);
    }

    /// Takes what has come: moments and latencies. Only one thread may call this.
    pub fn take(&self, mut each: impl FnMut(Nanos, Nanos)) {
        let (read, written) = (self.read.load(Relaxed), self.written.load(Acquire));
        for number in read..written {
            let (at, latency) = self.place(number);
            each(Nanos(at.load(Relaxed)), Nanos(latency.load(Relaxed)));
        }
        self.read.store(written, Release);
    }

    /// How many found no place.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    #[expect(clippy::cast_possible_truncation, reason = "what is kept of it is below 65536")]
    fn place(&self, number: u64) -> &(AtomicU64, AtomicU64) {
        &self.places[number as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_comes_out_in_order() {
        let feed = Feed::new();
        let mut next = 0;
        for samples in [3, 0, PLACES as u64, 1, 40_000, 40_000] {
            (next..next + samples).for_each(|n| feed.put(Nanos(n), Nanos(2 * n)));
            let mut taken = Vec::new();
            feed.take(|at, latency| taken.push((at.0, latency.0)));
            assert_eq!(taken, (next..next + samples).map(|n| (n, 2 * n)).collect::<Vec<_>>());
            next += samples;
        }
        assert_eq!(feed.lost(), 0);
    }

    #[test]
    fn what_finds_no_place_is_counted() {
        let feed = Feed::new();
        (0..PLACES as u64 + 3).for_each(|n| feed.put(Nanos(n), Nanos(0)));
        assert_eq!(feed.lost(), 3);
        let mut taken = 0;
        feed.take(|_, _| taken += 1);
        assert_eq!(taken, PLACES);
    }
}
