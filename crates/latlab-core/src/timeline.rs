//! Time line of the worst latency in each interval of a run, in constant memory.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The worst latency per interval of time since the run began.
///
/// It starts with intervals of 2²⁰ ns (about a millisecond) and doubles their length whenever the
/// run outgrows 1024 intervals, so that a second and a week need the same memory, and any two
/// time lines can be merged.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of one interval: 2ⁿ nanoseconds.
    width: Nanos,
    /// The worst latency of each interval; 0 where there was no sample.
    worst: Vec<Nanos>,
}

const MAX_INTERVALS: usize = 1024;
const FIRST_WIDTH: Nanos = Nanos(1 << 20);

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline::new()
    }
}

impl Clone for Timeline {
    fn clone(&self) -> Timeline {
        Timeline { width: self.width, worst: self.worst.clone() }
    }

    /// Does not allocate if this time line was made by [`Timeline::new`].
    fn clone_from(&mut self, other: &Timeline) {
        self.width = other.width;
        self.worst.clone_from(&other.worst);
    }
}

impl Timeline {
    /// Creates an empty time line and allocates all of its memory.
    pub fn new() -> Timeline {
        // Written once, so that no page is touched for the first time while measuring.
        let mut worst = vec![Nanos::MAX; MAX_INTERVALS];
        worst.clear();
        Timeline { width: FIRST_WIDTH, worst }
    }

    /// Returns the length of one interval.
    pub fn width(&self) -> Nanos {
        self.width
    }

    /// Iterates over the start of each interval and the worst latency in it.
    pub fn points(&self) -> impl Iterator<Item = (Nanos, Nanos)> + '_ {
        (0..).zip(&self.worst).map(|(index, worst)| (Nanos(index * self.width.0), *worst))
    }

    /// Records a latency `at` nanoseconds after the run began. Does not allocate.
    #[inline]
    pub fn record(&mut self, at: Nanos, latency: Nanos) {
        let shift = self.width.0.trailing_zeros();
        let index = usize::try_from(at.0 >> shift).unwrap_or(usize::MAX);
        if index < self.worst.len() {
            self.worst[index] = self.worst[index].max(latency);
        } else {
            self.extend(at, latency);
        }
    }

    #[cold]
    fn extend(&mut self, at: Nanos, latency: Nanos) {
        while at.0 / self.width.0 >= MAX_INTERVALS as u64 {
            self.fold();
        }
        let index = usize::try_from(at.0 / self.width.0).expect("below MAX_INTERVALS");
        self.worst.resize(self.worst.len().max(index + 1), Nanos(0));
        self.worst[index] = self.worst[index].max(latency);
    }

    /// Doubles the length of the intervals.
    fn fold(&mut self) {
        let half = self.worst.len().div_ceil(2);
        for index in 0..half {
            let second = self.worst.get(2 * index + 1).copied().unwrap_or_default();
            self.worst[index] = self.worst[2 * index].max(second);
        }
        self.worst.truncate(half);
        self.width = Nanos(self.width.0 * 2);
    }

    /// Merges the time line of another run into this one: the worse of both in each interval.
    pub fn merge(&mut self, other: &Timeline) {
        let mut other = other.clone();
        while self.width < other.width {
            self.fold();
        }
        while other.width < self.width {
            other.fold();
        }
        self.worst.resize(self.worst.len().max(other.worst.len()), Nanos(0));
        for (mine, theirs) in self.worst.iter_mut().zip(&other.worst) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Returns this time line begun `by` later. A sample may appear up to the length of an interval
    /// early, as only its interval is known.
    #[must_use]
    pub fn delayed(&self, by: Nanos) -> Timeline {
        let mut delayed = Timeline::new();
        for (at, worst) in self.points() {
            delayed.record(Nanos(at.0.saturating_add(by.0)), worst);
        }
        delayed
    }

    /// Returns the running maximum: the start and the worst sample of each interval whose worst
    /// sample exceeds all earlier ones.
    pub fn running_maximum(&self) -> Vec<(Nanos, Nanos)> {
        let mut rises: Vec<(Nanos, Nanos)> = Vec::new();
        for (at, worst) in self.points() {
            if worst > rises.last().map_or(Nanos(0), |(_, highest)| *highest) {
                rises.push((at, worst));
            }
        }
        rises
    }

    /// The end of its last interval.
    pub(crate) fn end(&self) -> Nanos {
        Nanos(self.width.0.saturating_mul(self.worst.len() as u64))
    }

    /// The worst latency of all.
    pub(crate) fn max(&self) -> Nanos {
        self.worst.iter().copied().max().unwrap_or_default()
    }

    /// Whether a stored time line is valid; a damaged one would panic later.
    pub(crate) fn is_sound(&self) -> bool {
        let widths = FIRST_WIDTH..=Nanos(u64::MAX / MAX_INTERVALS as u64);
        widths.contains(&self.width)
            && self.width.0.is_power_of_two()
            && self.worst.len() <= MAX_INTERVALS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn timeline_of_a_week_does_not_grow() {
        let mut timeline = Timeline::new();
        let memory = timeline.worst.capacity();
        for second in 0..604_800 {
            timeline.record(Nanos::from_secs(second), Nanos(second));
        }
        assert_eq!(timeline.worst.capacity(), memory);
        let mut copy = Timeline::new();
        let place = copy.worst.as_ptr();
        copy.clone_from(&timeline);
        assert_eq!((copy.worst.as_ptr(), &copy), (place, &timeline));
        assert!(timeline.points().count() > MAX_INTERVALS / 2);
    }

    proptest! {
        #[test]
        fn merged_timelines_keep_the_worst(samples in proptest::collection::vec((0u64..1 << 50, 0u64..1 << 40), 1..100)) {
            let (mut whole, mut left, mut right) = (Timeline::new(), Timeline::new(), Timeline::new());
            for (n, (at, latency)) in samples.iter().enumerate() {
                let half = if n % 2 == 0 { &mut left } else { &mut right };
                half.record(Nanos(*at), Nanos(*latency));
                whole.record(Nanos(*at), Nanos(*latency));
            }
            left.merge(&right);
            prop_assert_eq!(&left, &whole);
            let worst = samples.iter().map(|(_, l)| *l).max();
            prop_assert_eq!(whole.points().map(|(_, l)| l.0).max(), worst);
        }

        #[test]
        fn delayed_timeline_keeps_its_samples_within_an_interval(
            samples in proptest::collection::vec((0u64..1 << 50, 1u64..1 << 40), 1..100),
            by in 0u64..1 << 50,
        ) {
            let (mut timeline, mut expected) = (Timeline::new(), Timeline::new());
            for (at, latency) in &samples {
                timeline.record(Nanos(*at), Nanos(*latency));
                expected.record(Nanos(*at + by), Nanos(*latency));
            }
            let delayed = timeline.delayed(Nanos(by));
            prop_assert!(delayed.width() >= timeline.width());
            let first = delayed.points().find(|(_, worst)| worst.0 > 0).unwrap().0;
            let exact = expected.points().find(|(_, worst)| worst.0 > 0).unwrap().0;
            prop_assert!(first <= exact + expected.width() && exact.0 <= (first + delayed.width() + timeline.width()).0);
            prop_assert_eq!(delayed.running_maximum().last().map(|(_, l)| *l), expected.running_maximum().last().map(|(_, l)| *l));
        }

        #[test]
        fn running_maximum_rises_to_the_maximum(samples in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 40), 0..100)) {
            let mut timeline = Timeline::new();
            for (at, latency) in &samples {
                timeline.record(Nanos(*at), Nanos(*latency));
            }
            let rises = timeline.running_maximum();
            prop_assert!(rises.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            let maximum = samples.iter().map(|(_, latency)| *latency).filter(|latency| *latency > 0).max();
            prop_assert_eq!(rises.last().map(|(_, latency)| latency.0), maximum);
        }
    }
}
