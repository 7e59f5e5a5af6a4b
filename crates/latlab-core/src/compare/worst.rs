//! The worst of both sides: maxima grow with the number of samples, so that only what was observed
//! is compared, in words.

use super::extreme::Extreme;
use crate::histogram::Histogram;
use crate::time::Nanos;
use serde::Serialize;

/// What can be said of the worst of a latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The first side.
    pub a: Bound,
    /// The second side.
    pub b: Bound,
    /// How often each side was above the other's worst.
    pub above_the_other: (u64, u64),
}

/// What the worst of one side says about worse ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The worst.
    pub max: Nanos,
    /// In how many periods; of a latency without a period, samples.
    pub periods: u64,
    /// A worse one comes less often than this per period, with 95 %, where periods do not hang
    /// together: 3 by their number (Hanley and Lippman-Hand 1983). None without a period, and where
    /// there is no chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// What is expected beyond it, or why that can't be said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beyond: Vec<Extreme>,
}

impl Worst {
    /// Of the samples and missed periods of both sides; `by_chance` where there is any.
    pub(super) fn of(a: (&Histogram, u64), b: (&Histogram, u64), by_chance: bool) -> Worst {
        let above_the_other = (above(a.0, b.0.max()), above(b.0, a.0.max()));
        let bound = |(samples, missed): (&Histogram, u64)| {
            let periods = samples.count().saturating_add(missed);
            #[expect(clippy::cast_precision_loss, reason = "2^53 periods take 285 years")]
            let rate = (by_chance && samples.count() > 0).then(|| (3.0 / periods as f64).min(1.0));
            Bound { max: samples.max(), periods, rate, beyond: Vec::new() }
        };
        Worst { a: bound(a), b: bound(b), above_the_other }
    }

    /// How the worst of both stand to each other.
    pub fn words(&self) -> String {
        let (a, b) = (&self.a, &self.b);
        if a.periods == 0 || b.periods == 0 {
            return "one of them has no samples".to_owned();
        }
        let unequal = if a.periods == b.periods {
            ""
        } else {
            "maxima of unequal numbers of samples are not compared: "
        };
        let observed = match (a.max.cmp(&b.max), self.above_the_other) {
            (std::cmp::Ordering::Equal, _) => "neither was above the worst of the other".to_owned(),
            (std::cmp::Ordering::Less, (_, times)) => exceeded("B", times, "A", a.max),
            (std::cmp::Ordering::Greater, (times, _)) => exceeded("A", times, "B", b.max),
        };
        format!("{unequal}{observed}")
    }
}

impl Bound {
    /// In how many periods a worse one comes once at most, with 95 %.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of periods, by three"
    )]
    pub fn once_in(&self) -> Option<u64> {
        self.rate.map(|rate| (1.0 / rate).floor() as u64).filter(|periods| *periods > 1)
    }
}

fn exceeded(worse: &str, times: u64, other: &str, max: Nanos) -> String {
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    format!("{worse} was {times} above the worst of {other}, {max}")
}

/// How many samples are above `limit`; at least one where the maximum is.
fn above(samples: &Histogram, limit: Nanos) -> u64 {
    let above = samples.buckets().filter(|bucket| bucket.from > limit);
    above.map(|bucket| bucket.count).sum::<u64>().max(u64::from(samples.max() > limit))
}

#[cfg(test)]
mod tests {
    use super::super::tests::histogram;
    use super::*;

    #[test]
    fn of_the_worst_only_what_was_observed_is_said() {
        let a = histogram(&[100; 2_000]);
        let b = histogram(&[vec![100; 990], vec![500; 10]].concat());
        let worst = Worst::of((&a, 1_000), (&b, 0), true);
        assert_eq!(worst.a.rate, Some(0.001));
        assert_eq!(worst.a.once_in(), Some(1_000));
        assert_eq!(
            worst.words(),
            "maxima of unequal numbers of samples are not compared: B was 10 times above the worst \
             of A, 100 ns"
        );
        let same = Worst::of((&a, 0), (&a, 0), false);
        assert_eq!(same.words(), "neither was above the worst of the other");
        assert_eq!(same.a.once_in(), None);
    }

    /// Simulated: where something comes once in a thousand periods, 3000 periods without it happen
    /// in fewer than 5 of 100 cases.
    #[test]
    fn the_rule_of_three_holds() {
        let mut random = crate::random::Random::new(3);
        let without = (0..2_000).filter(|_| (0..3_000).all(|_| random.below(1_000) > 0)).count();
        assert!((60..140).contains(&without), "{without} of 2000");
    }
}
