//! Confidence intervals by resampling runs (bootstrap, Efron 1979): as many runs are drawn as there
//! are, with replacement, and the figure is computed again. Single samples are never drawn: those
//! of one run are correlated.

use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::random::Random;
use crate::time::Nanos;
use std::collections::BTreeMap;

/// Number of resamplings; the interval is then from the 50th to the 1950th.
const TIMES: usize = 1_999;
const TAIL: usize = 49;

/// Cumulative histograms: for each value of any run, the samples of each run up to it.
struct Cumulative {
    values: Vec<Nanos>,
    runs: Vec<Vec<u64>>,
}

/// Returns the interval of each of these quantiles of all runs together.
pub(super) fn quantiles(runs: &[Histogram], quantiles: &[f64]) -> Vec<Interval<Nanos>> {
    let all = Cumulative::of(runs);
    let mut random = Random::new(2);
    let mut drawn: Vec<Vec<Nanos>> = vec![Vec::with_capacity(TIMES); quantiles.len()];
    for _ in 0..TIMES {
        let mut times = vec![0; runs.len()];
        for _ in runs {
            times[random.below(runs.len())] += 1;
        }
        for (quantile, drawn) in quantiles.iter().zip(&mut drawn) {
            drawn.push(all.quantile(&times, *quantile));
        }
    }
    let interval = |mut drawn: Vec<Nanos>| {
        drawn.sort_unstable();
        Interval { low: drawn[TAIL], high: drawn[TIMES - 1 - TAIL] }
    };
    drawn.into_iter().map(interval).collect()
}

/// Returns the median of the differences of pairs, and its interval.
pub(super) fn paired_difference(a: &[f64], b: &[f64]) -> (f64, Interval<f64>) {
    let differences: Vec<f64> = b.iter().zip(a).map(|(b, a)| b - a).collect();
    (median(differences.clone()), resampled(|random| median(draw(&differences, random))))
}

/// Returns the difference of the medians of two sets, and its interval.
pub(super) fn difference_of_medians(a: &[f64], b: &[f64]) -> (f64, Interval<f64>) {
    let difference = median(b.to_vec()) - median(a.to_vec());
    (difference, resampled(|random| median(draw(b, random)) - median(draw(a, random))))
}

fn resampled(mut figure: impl FnMut(&mut Random) -> f64) -> Interval<f64> {
    let mut random = Random::new(3);
    let mut drawn: Vec<f64> = (0..TIMES).map(|_| figure(&mut random)).collect();
    drawn.sort_by(f64::total_cmp);
    Interval { low: drawn[TAIL], high: drawn[TIMES - 1 - TAIL] }
}

fn draw(values: &[f64], random: &mut Random) -> Vec<f64> {
    values.iter().map(|_| values[random.below(values.len())]).collect()
}

/// Returns the median; of an even number of values the mean of the middle two, of no values 0.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        even if even.is_multiple_of(2) => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

impl Cumulative {
    fn of(runs: &[Histogram]) -> Cumulative {
        let mut counts: BTreeMap<Nanos, Vec<u64>> = BTreeMap::new();
        let worst = runs.iter().map(Histogram::max).max().unwrap_or_default();
        for (nth, run) in runs.iter().enumerate() {
            for bucket in run.buckets() {
                let value = (bucket.to - Nanos(1)).min(worst);
                counts.entry(value).or_insert_with(|| vec![0; runs.len()])[nth] += bucket.count;
            }
        }
        let mut all = Cumulative { values: Vec::new(), runs: vec![Vec::new(); runs.len()] };
        for (value, counts) in counts {
            all.values.push(value);
            for (run, count) in all.runs.iter_mut().zip(counts) {
                run.push(run.last().copied().unwrap_or_default() + count);
            }
        }
        all
    }

    /// Returns the quantile of the runs together, each repeated this many times.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "2^53 samples take 285 years, and a share of a count is a count"
    )]
    fn quantile(&self, times: &[u64], quantile: f64) -> Nanos {
        let upto = |place: usize| -> u64 {
            self.runs.iter().zip(times).map(|(run, times)| run[place] * times).sum()
        };
        let Some(last) = self.values.len().checked_sub(1) else {
            return Nanos(0);
        };
        let wanted = (quantile * upto(last) as f64).ceil() as u64;
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = usize::midpoint(low, high);
            if upto(middle) >= wanted {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.values[low]
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::histogram;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identical_runs_have_intervals_of_zero_width() {
        let runs = vec![histogram(&(0..1000).collect::<Vec<_>>()); 8];
        let [median] = quantiles(&runs, &[0.5])[..] else { panic!("one was asked for") };
        assert_eq!(median.low, median.high);
        let (difference, interval) = paired_difference(&[1.0; 8], &[1.5; 8]);
        assert_eq!((difference, interval), (0.5, Interval { low: 0.5, high: 0.5 }));
    }

    /// The median of ten values has an interval from about the third to about the eighth (order
    /// statistics).
    #[test]
    fn median_interval_agrees_with_order_statistics() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let (median, interval) = paired_difference(&[0.0; 10], &values);
        assert!((median - 5.5).abs() < 1e-9);
        assert!((2.5..=3.5).contains(&interval.low), "{interval:?}");
        assert!((7.5..=8.5).contains(&interval.high), "{interval:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn quantiles_of_all_runs_equal_those_of_their_sum(
            runs in proptest::collection::vec(proptest::collection::vec(1u64..100_000, 1..50), 1..6),
            q in 0.01f64..0.999,
        ) {
            let runs: Vec<Histogram> = runs.iter().map(|run| histogram(run)).collect();
            let mut sum = Histogram::new();
            for run in &runs {
                sum.add(run);
            }
            let once = Cumulative::of(&runs).quantile(&vec![1; runs.len()], q);
            prop_assert_eq!(once, sum.quantile(q));
            let [interval] = quantiles(&runs, &[q])[..] else { panic!("one was asked for") };
            prop_assert!(interval.low <= interval.high);
            prop_assert!(interval.low >= sum.min() && interval.high <= sum.max());
        }
    }
}
