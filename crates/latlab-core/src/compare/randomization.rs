//! Randomization test over runs, for many quantiles at once: could the differences be chance?
//!
//! If A and B do not differ, the labels of the runs carry no information: the two runs of a pair
//! can be exchanged or, without pairs, any runs can be those of B. For each quantile the ranks of
//! the differences are summed (Wilcoxon 1945), so that one disturbed run counts as one. The
//! observed sum is compared with the sums of random arrangements. A run is exchanged as a whole,
//! with all its series and quantiles, and the largest sum of each arrangement counts. The
//! probability of a single false difference therefore stays below the level, however the quantiles
//! are correlated (Westfall and Young 1993, step-down maxT; at least as powerful as Holm's
//! correction of the same tests).

use super::runs::Method;
use crate::random::Random;

/// Number of random arrangements.
const DRAWN: usize = 9_999;

/// Sums that differ by less are equal up to rounding.
const SAME: f64 = 1e-9;

/// The logarithms of one quantile in the runs of both sides, in the order of the runs.
pub(super) struct Values {
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
}

/// Returns, for each quantile, the probability that any quantile differs as much by chance.
pub(super) fn probabilities(values: &[Values], method: Method) -> Vec<f64> {
    let scores: Vec<Vec<f64>> = match method {
        Method::Paired => values.iter().map(Values::signed_ranks).collect(),
        _ => values.iter().map(Values::centred_ranks).collect(),
    };
    let Some(first) = values.first() else {
        return Vec::new();
    };
    let mut signs = match method {
        Method::Paired => vec![1.0; first.a.len()],
        _ => [vec![0.0; first.a.len()], vec![1.0; first.b.len()]].concat(),
    };
    let observed: Vec<f64> = scores.iter().map(|scores| sum(scores, &signs)).collect();
    let mut largest_first: Vec<usize> = (0..observed.len()).collect();
    largest_first.sort_by(|x, y| observed[*y].total_cmp(&observed[*x]));
    let mut as_large = vec![1usize; observed.len()];
    let mut random = Random::new(1);
    for _ in 0..DRAWN {
        arrange(&mut signs, method, &mut random);
        let mut largest = 0.0f64;
        for nth in largest_first.iter().rev() {
            largest = largest.max(sum(&scores[*nth], &signs));
            as_large[*nth] += usize::from(largest >= observed[*nth] - SAME);
        }
    }
    let mut probabilities = vec![1.0; observed.len()];
    let mut most = 0.0f64;
    for nth in largest_first {
        #[expect(clippy::cast_precision_loss, reason = "ten thousand are drawn")]
        let share = as_large[nth] as f64 / (DRAWN + 1) as f64;
        most = most.max(share);
        probabilities[nth] = most;
    }
    probabilities
}

fn sum(scores: &[f64], signs: &[f64]) -> f64 {
    scores.iter().zip(signs).map(|(score, sign)| score * sign).sum::<f64>().abs()
}

fn arrange(signs: &mut [f64], method: Method, random: &mut Random) {
    if method == Method::Paired {
        signs.fill_with(|| if random.below(2) == 0 { 1.0 } else { -1.0 });
        return;
    }
    for nth in (1..signs.len()).rev() {
        signs.swap(nth, random.below(nth + 1));
    }
}

impl Values {
    /// Returns the signed rank of the difference of each pair.
    fn signed_ranks(&self) -> Vec<f64> {
        let differences: Vec<f64> = self.b.iter().zip(&self.a).map(|(b, a)| b - a).collect();
        let ranks = ranks(&differences.iter().map(|d| d.abs()).collect::<Vec<_>>());
        let signed = ranks.iter().zip(&differences);
        scaled(signed.map(|(rank, d)| if *d == 0.0 { 0.0 } else { rank * d.signum() }).collect())
    }

    /// Returns the rank of each run among all runs, minus the mean rank.
    fn centred_ranks(&self) -> Vec<f64> {
        let ranks = ranks(&[self.a.as_slice(), &self.b].concat());
        #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 runs")]
        let middle = (ranks.len() + 1) as f64 / 2.0;
        scaled(ranks.into_iter().map(|rank| rank - middle).collect())
    }
}

/// Normalizes the scores, so that the sums of all quantiles have the same variance despite ties.
fn scaled(mut scores: Vec<f64>) -> Vec<f64> {
    let length = scores.iter().map(|score| score * score).sum::<f64>().sqrt();
    if length > 0.0 {
        for score in &mut scores {
            *score /= length;
        }
    }
    scores
}

/// Returns the ranks, from 1; equal values share their mean rank.
#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 runs")]
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let upto = values.iter().filter(|other| *other <= value).count();
        f64::midpoint((below + 1) as f64, upto as f64)
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(a: &[f64], b: &[f64]) -> Values {
        Values { a: a.to_vec(), b: b.to_vec() }
    }

    /// scipy 1.17.1: `wilcoxon([1, 2, 3, 4, 5, 6, 7, 8, 9, 10.5], mode="exact").pvalue` is
    /// 0.001953125, with the first two negative 0.009765625; `mannwhitneyu([1, 2, 3, 4, 5],
    /// [4.5, 6, 7, 8, 9], method="exact").pvalue` is 0.015873.
    #[test]
    fn single_quantile_probability_is_that_of_wilcoxon() {
        let near = |found: &[f64], exact: f64| {
            // Five standard deviations of the drawn estimate.
            let spread = 5.0 * (exact * (1.0 - exact) / 1e4).sqrt();
            assert!((found[0] - exact).abs() < spread, "{found:?}, not {exact}");
        };
        let mut b = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.5];
        let paired = |b: &[f64]| probabilities(&[values(&[0.0; 10], b)], Method::Paired);
        near(&paired(&b), 0.001_953_125);
        (b[0], b[1]) = (-1.0, -2.0);
        near(&paired(&b), 0.009_765_625);
        let sets = values(&[1.0, 2.0, 3.0, 4.0, 5.0], &[4.5, 6.0, 7.0, 8.0, 9.0]);
        near(&probabilities(&[sets], Method::Unpaired), 0.015_873);
    }

    #[test]
    fn equal_values_have_probability_one() {
        let same = [3.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        for method in [Method::Paired, Method::Unpaired] {
            assert_eq!(probabilities(&[values(&same, &same)], method), [1.0], "{method:?}");
            assert!(probabilities(&[], method).is_empty());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn additional_quantiles_never_lower_a_probability(
            a in proptest::collection::vec(0.0f64..1.0, 24),
            b in proptest::collection::vec(0.0f64..1.0, 24),
        ) {
            let one = |n: usize| values(&a[8 * n..8 * n + 8], &b[8 * n..8 * n + 8]);
            for method in [Method::Paired, Method::Unpaired] {
                let alone = probabilities(&[one(0)], method)[0];
                let among = probabilities(&[one(0), one(1), one(2)], method);
                prop_assert!(among[0] >= alone);
                prop_assert!(among.iter().all(|p| (0.0..=1.0).contains(p)));
            }
        }
    }
}
