//! Counting latencies on the hot path: one writer that never waits, readers whenever they like.

use crate::histogram::{Histogram, LARGEST};
use crate::time::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A histogram that its one writer fills without locks, allocation or system calls, while a live
/// view reads it.
///
/// The buckets are those of `HdrHistogram` at three significant digits from 1 ns to 1 h, so that
/// [`Tally::histogram`] moves them over without loss; `HdrHistogram`'s own type can't be read
/// while it is written. Values above one hour stand in the last bucket, and exactly in `max`.
#[derive(Debug)]
pub struct Tally {
    buckets: Box<[AtomicU64]>,
    recorded: AtomicU64,
    missed: AtomicU64,
    below_zero: AtomicU64,
    now: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    sum: AtomicU64,
}

/// Sub-buckets of one power of two: 2 × 10³ rounded up to a power of two.
const SUB_BUCKETS: u64 = 2048;
const HALF: u64 = SUB_BUCKETS / 2;
const SUB_BITS: u32 = SUB_BUCKETS.trailing_zeros();
const BUCKETS: usize = index(LARGEST.0) + 1;

#[expect(clippy::cast_possible_truncation, reason = "an index is below 34 000")]
const fn index(value: u64) -> usize {
    let exponent = 64 - (value | (SUB_BUCKETS - 1)).leading_zeros() - SUB_BITS;
    ((exponent as u64 + 1) * HALF + (value >> exponent) - HALF) as usize
}

/// The smallest value that falls into bucket `index`.
const fn value(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB_BUCKETS {
        return index;
    }
    let exponent = index / HALF - 1;
    (index % HALF + HALF) << exponent
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
}

impl Tally {
    /// An empty tally of about 270 kB, all of it allocated now and never again.
    pub fn new() -> Tally {
        Tally {
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

    /// Counts a sample that came before it was due, beside recording it.
    #[inline]
    pub fn early(&self) {
        add(&self.below_zero, 1);
    }

    /// Samples recorded so far.
    #[inline]
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Relaxed)
    }

    /// Periods missed so far.
    #[inline]
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }

    /// Samples below zero so far.
    pub fn below_zero(&self) -> u64 {
        self.below_zero.load(Relaxed)
    }

    /// The newest latency.
    pub fn now(&self) -> Nanos {
        Nanos(self.now.load(Relaxed))
    }

    /// What has been counted, as a histogram to keep. While a writer is at work it is a view of
    /// the moment: each bucket is right, the sum may be one sample ahead.
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

/// Adds without a locked instruction: there is one writer.
#[inline]
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_two_second_outlier_and_a_two_day_one_stand_in_the_histogram() {
        let tally = Tally::new();
        tally.record(Nanos(1_000));
        tally.record(Nanos::from_secs(2));
        tally.record(Nanos::from_secs(172_800));
        let histogram = tally.histogram();
        assert_eq!(histogram.count(), 3);
        assert_eq!(histogram.max(), Nanos::from_secs(172_800));
        assert_eq!(histogram.buckets().filter(|b| b.from >= Nanos(1_990_000_000)).count(), 2);
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_hdrhistogram(samples in proptest::collection::vec(0..=LARGEST.0, 1..200)) {
            let tally = Tally::new();
            let mut direct = Histogram::new();
            for sample in &samples {
                tally.record(Nanos(*sample));
                direct.record(Nanos(*sample));
            }
            prop_assert_eq!(tally.histogram(), direct);
        }

        #[test]
        fn a_bucket_starts_at_its_own_value(index_ in 0..BUCKETS) {
            prop_assert_eq!(index(value(index_)), index_);
        }
    }
}
