//! The maxima of both sides. Maxima grow with the number of samples, so that only observed facts
//! are compared.

use super::extreme::Extreme;
use crate::histogram::Histogram;
use crate::time::Nanos;
use serde::Serialize;

/// The maxima of one latency in both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Maxima {
    /// The first side.
    pub a: Bound,
    /// The second side.
    pub b: Bound,
    /// How many samples of each side exceeded the other side's maximum.
    pub above_the_other: (u64, u64),
    /// Number of samples of each side.
    #[serde(skip)]
    samples: (u64, u64),
}

/// The maximum of one side, and the bounds on larger latencies that follow from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The maximum.
    pub max: Nanos,
    /// Number of periods; number of samples of a latency without a period.
    pub periods: u64,
    /// 95 % upper bound on the probability per period of a latency above the maximum, if periods
    /// are independent: 3 divided by their number (Hanley and Lippman-Hand 1983). None without a
    /// period, and for exactly repeatable times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Tail estimates beyond the maximum, or why there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beyond: Vec<Extreme>,
}

impl Maxima {
    /// From the samples and missed periods of both sides; `by_chance` unless times are exactly
    /// repeatable.
    pub(super) fn of(a: (&Histogram, u64), b: (&Histogram, u64), by_chance: bool) -> Maxima {
        let above_the_other = (above(a.0, b.0.max()), above(b.0, a.0.max()));
        let bound = |(samples, missed): (&Histogram, u64)| {
            let periods = samples.count().saturating_add(missed);
            #[expect(clippy::cast_precision_loss, reason = "2^53 periods take 285 years")]
            let rate = (by_chance && samples.count() > 0).then(|| (3.0 / periods as f64).min(1.0));
            Bound { max: samples.max(), periods, rate, beyond: Vec::new() }
        };
        let samples = (a.0.count(), b.0.count());
        Maxima { a: bound(a), b: bound(b), above_the_other, samples }
    }

    /// Compares the two maxima, in words. The sides are called A and B.
    pub fn words(&self) -> String {
        self.words_of(["A", "B"])
    }

    /// Compares the two maxima, in words, with the names of the sides.
    pub fn words_of(&self, [name_a, name_b]: [&str; 2]) -> String {
        let (a, b) = (&self.a, &self.b);
        if a.periods == 0 || b.periods == 0 {
            return "one side has no samples".to_owned();
        }
        let unequal = if a.periods == b.periods {
            ""
        } else {
            "maxima of unequal numbers of samples are not comparable: "
        };
        let (of_a, of_b) = (self.above_the_other.0, self.above_the_other.1);
        let observed = match a.max.cmp(&b.max) {
            std::cmp::Ordering::Equal => "neither side exceeded the other's maximum".to_owned(),
            std::cmp::Ordering::Less => exceeded(name_b, of_b, self.samples.1, name_a, a.max),
            std::cmp::Ordering::Greater => exceeded(name_a, of_a, self.samples.0, name_b, b.max),
        };
        format!("{unequal}{observed}")
    }
}

impl Bound {
    /// Returns the number of periods for which, with 95 % confidence, at most one in that many
    /// exceeds the maximum.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of periods, divided by three"
    )]
    pub fn once_in(&self) -> Option<u64> {
        self.rate.map(|rate| (1.0 / rate).floor() as u64).filter(|periods| *periods > 1)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share is shown with two digits")]
fn exceeded(side: &str, count: u64, of: u64, other: &str, max: Nanos) -> String {
    let noun = if count == 1 { "sample" } else { "samples" };
    let percent = 100.0 * count as f64 / of.max(1) as f64;
    let share = if percent < 0.005 { "< 0.01".to_owned() } else { format!("{percent:.2}") };
    format!("{count} {noun} of {side} ({share} %) exceeded {other}'s maximum, {max}")
}

/// Returns the number of samples above `limit`; at least one if the maximum is above it.
fn above(samples: &Histogram, limit: Nanos) -> u64 {
    let above = samples.buckets().filter(|bucket| bucket.from > limit);
    above.map(|bucket| bucket.count).sum::<u64>().max(u64::from(samples.max() > limit))
}

#[cfg(test)]
mod tests {
    use super::super::tests::histogram;
    use super::*;

    #[test]
    fn maxima_are_compared_by_observed_samples_only() {
        let a = histogram(&[100; 2_000]);
        let b = histogram(&[vec![100; 990], vec![500; 10]].concat());
        let maxima = Maxima::of((&a, 1_000), (&b, 0), true);
        assert_eq!(maxima.a.rate, Some(0.001));
        assert_eq!(maxima.a.once_in(), Some(1_000));
        assert_eq!(
            maxima.words(),
            "maxima of unequal numbers of samples are not comparable: 10 samples of B (1.00 %) \
             exceeded A's maximum, 100 ns"
        );
        let same = Maxima::of((&a, 0), (&a, 0), false);
        assert_eq!(same.words(), "neither side exceeded the other's maximum");
        assert_eq!(same.a.once_in(), None);
    }

    /// The latency of each period is equally likely to be any of a million values. Of 2000 runs, 95 %
    /// have a maximum that later periods exceed at most as often as their bound says.
    #[test]
    fn rule_of_three_holds_in_simulation() {
        let mut random = crate::random::Random::new(3);
        let mut is_exceeded_more_often = || {
            let samples: Vec<u64> = (0..300).map(|_| random.below(1_000_000) as u64).collect();
            let samples = histogram(&samples);
            let Bound { max, rate, .. } = Maxima::of((&samples, 0), (&samples, 0), true).a;
            let larger = u32::try_from(999_999 - max.0).unwrap();
            f64::from(larger) / 1e6 > rate.unwrap()
        };
        let wrong = (0..2_000).filter(|_| is_exceeded_more_often()).count();
        assert!((60..140).contains(&wrong), "{wrong} of 2000");
    }
}
