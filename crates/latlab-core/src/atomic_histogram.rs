//! Atomic histogram of latencies for the hot path, with one writer and concurrent readers.

use crate::histogram::{Histogram, LARGEST};
use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A histogram that one writer fills without locks, allocation or system calls, while other threads
/// read it.
///
/// The buckets are those of `HdrHistogram` at three significant digits from 1 ns to 1 h, so that
/// [`AtomicHistogram::histogram`] copies them without loss; the type of `HdrHistogram` itself can't
/// be read while it is written. Values above one hour are counted in the last bucket, and `max` is
/// exact.
#[derive(Debug)]
pub struct AtomicHistogram {
    buckets: Box<[AtomicU64]>,
    recorded: AtomicU64,
    missed: AtomicU64,
    below_zero: AtomicU64,
    now: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    sum: AtomicU64,
}

/// Number of sub-buckets of a bucket: 2 × 10³ rounded up to a power of two.
const SUB_BUCKETS: u64 = 2048;
const HALF: u64 = SUB_BUCKETS / 2;
const SUB_BITS: u32 = SUB_BUCKETS.trailing_zeros();
/// Number of buckets.
pub(crate) const BUCKETS: usize = index(LARGEST.0) + 1;

#[expect(clippy::cast_possible_truncation, reason = "an index is below 34 000")]
const fn index(value: u64) -> usize {
    let exponent = 64 - (value | (SUB_BUCKETS - 1)).leading_zeros() - SUB_BITS;
    ((exponent as u64 + 1) * HALF + (value >> exponent) - HALF) as usize
}

/// The smallest value in bucket `index`.
pub(crate) const fn value(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB_BUCKETS {
        return index;
    }
    let exponent = index / HALF - 1;
    (index % HALF + HALF) << exponent
}

impl Default for AtomicHistogram {
    fn default() -> AtomicHistogram {
        AtomicHistogram::new()
    }
}

impl AtomicHistogram {
    /// Creates an empty histogram and allocates all of its memory, about 270 kB.
    pub fn new() -> AtomicHistogram {
        AtomicHistogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            recorded: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            below_zero: AtomicU64::new(0),
            now: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    /// Counts one latency. Only one thread may call this; it is wait-free and can't fail.
    #[inline]
    pub fn record(&self, latency: Nanos) {
        let bucket = &self.buckets[index(latency.0.min(LARGEST.0))];
        add(bucket, 1);
        add(&self.recorded, 1);
        add(&self.sum, latency.0);
        self.now.store(latency.0, Relaxed);
        if latency.0 > self.max.load(Relaxed) {
            self.max.store(latency.0, Relaxed);
        }
        if latency.0 < self.min.load(Relaxed) {
            self.min.store(latency.0, Relaxed);
        }
    }

    /// Counts periods that passed without a wake-up of their own.
    #[inline]
    pub fn miss(&self, periods: u64) {
        add(&self.missed, periods);
    }

    /// Counts an early sample, in addition to recording it.
    #[inline]
    pub fn early(&self) {
        add(&self.below_zero, 1);
    }

    /// Returns the number of samples so far.
    #[inline]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Relaxed)
    }

    /// Returns the number of missed periods so far.
    #[inline]
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }

    /// Returns the number of early samples so far.
    pub fn below_zero(&self) -> u64 {
        self.below_zero.load(Relaxed)
    }

    /// Returns the latest sample.
    pub fn now(&self) -> Nanos {
        Nanos(self.now.load(Relaxed))
    }

    /// Returns a copy as a [`Histogram`]. While a thread is writing, each bucket is right, and
    /// minimum, maximum and sum may be those of one sample more or less, as far as the buckets allow.
    pub fn histogram(&self) -> Histogram {
        let counts = self.buckets.iter().enumerate().filter_map(|(index, count)| {
            let count = count.load(Relaxed);
            (count > 0).then(|| (value(index), count))
        });
        Histogram::from_parts(
            counts,
            Nanos(self.min.load(Relaxed)),
            Nanos(self.max.load(Relaxed)),
            u128::from(self.sum.load(Relaxed)),
        )
    }
}

/// Adds without a locked instruction, as there is only one writer.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn outliers_of_two_seconds_and_two_days_are_counted() {
        let atomic = AtomicHistogram::new();
        atomic.record(Nanos(1_000));
        atomic.record(Nanos::from_secs(2));
        atomic.record(Nanos::from_secs(172_800));
        let histogram = atomic.histogram();
        assert_eq!(histogram.count(), 3);
        assert_eq!(histogram.max(), Nanos::from_secs(172_800));
        assert_eq!(histogram.buckets().filter(|b| b.from >= Nanos(1_990_000_000)).count(), 2);
    }

    proptest! {
        #[test]
        fn buckets_equal_those_of_hdrhistogram(samples in proptest::collection::vec(0..=LARGEST.0, 1..200)) {
            let atomic = AtomicHistogram::new();
            let mut direct = Histogram::new();
            for sample in &samples {
                atomic.record(Nanos(*sample));
                direct.record(Nanos(*sample));
            }
            prop_assert_eq!(atomic.histogram(), direct);
        }

        #[test]
        fn bucket_starts_at_its_own_value(index_ in 0..BUCKETS) {
            prop_assert_eq!(index(value(index_)), index_);
        }
    }
}
