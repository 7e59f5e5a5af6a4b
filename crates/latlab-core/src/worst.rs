//! The few worst samples of a series, with the moment each was taken.

use crate::time::Nanos;

/// How many samples are kept.
pub const KEPT: usize = 10;

/// One late wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The number of the mark that was made with it, from 1 (`latlab_sys::mark`).
    pub nth: u64,
    /// When the thread ran, since the run began.
    pub at: Nanos,
    /// How late that was.
    pub latency: Nanos,
}

/// The [`KEPT`] worst samples, the worst first, in memory that never grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst(Vec<Late>);

impl Default for Worst {
    fn default() -> Worst {
        Worst::new()
    }
}

impl Worst {
    /// An empty list with all of its memory.
    pub fn new() -> Worst {
        Worst(Vec::with_capacity(KEPT))
    }

    /// Notes a sample if it is among the worst. Does not allocate; of equals the earlier stays.
    #[inline]
    pub fn record(&mut self, nth: u64, at: Nanos, latency: Nanos) {
        if self.0.len() < KEPT || self.0[KEPT - 1].latency < latency {
            self.insert(Late { nth, at, latency });
        }
    }

    #[cold]
    fn insert(&mut self, late: Late) {
        self.0.truncate(KEPT - 1);
        let place = self.0.partition_point(|other| other.latency >= late.latency);
        self.0.insert(place, late);
    }

    /// The samples, the worst first.
    pub fn iter(&self) -> impl Iterator<Item = Late> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_worst_ten_are_kept_in_order(samples in proptest::collection::vec(0u64..50, 0..60)) {
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
