//! The worst samples of a series, with the time of each.

use crate::time::Nanos;

/// Number of samples that are kept.
pub const KEPT: usize = 10;

/// A sample among the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstSample {
    /// Sample index, from 1: the number of its mark (`latlab_sys::mark`).
    pub index: u64,
    /// When the thread ran, since the run began.
    pub at: Nanos,
    /// Its latency.
    pub latency: Nanos,
}

/// The [`KEPT`] worst samples, worst first, in constant memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Worst(Vec<WorstSample>);

impl Default for Worst {
    fn default() -> Worst {
        Worst::new()
    }
}

impl Clone for Worst {
    fn clone(&self) -> Worst {
        Worst(self.0.clone())
    }

    /// Does not allocate.
    fn clone_from(&mut self, other: &Worst) {
        self.0.clone_from(&other.0);
    }
}

impl Worst {
    /// Creates an empty list and allocates all of its memory.
    pub fn new() -> Worst {
        Worst(Vec::with_capacity(KEPT))
    }

    /// Records a sample if it is among the worst. Of equal samples the earlier stays. Does not
    /// allocate.
    #[inline]
    pub fn record(&mut self, index: u64, at: Nanos, latency: Nanos) {
        if self.0.len() < KEPT || self.0[KEPT - 1].latency < latency {
            self.insert(WorstSample { index, at, latency });
        }
    }

    #[cold]
    fn insert(&mut self, late: WorstSample) {
        self.0.truncate(KEPT - 1);
        let index = self.0.partition_point(|other| other.latency >= late.latency);
        self.0.insert(index, late);
    }

    /// Iterates over the samples, worst first.
    pub fn iter(&self) -> impl Iterator<Item = WorstSample> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn worst_ten_are_kept_in_order(samples in proptest::collection::vec(0u64..50, 0..60)) {
            let mut worst = Worst::new();
            for (at, latency) in (0..).zip(&samples) {
                worst.record(at + 1, Nanos(at), Nanos(*latency));
            }
            let mut sorted: Vec<(u64, u64)> = (0..).zip(samples).collect();
            sorted.sort_by_key(|(at, latency)| (std::cmp::Reverse(*latency), *at));
            sorted.truncate(KEPT);
            let kept: Vec<(u64, u64)> = worst.iter().map(|l| (l.at.0, l.latency.0)).collect();
            prop_assert_eq!(kept, sorted);
        }
    }
}
