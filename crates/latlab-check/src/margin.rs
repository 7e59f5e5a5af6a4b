//! The margin of a thread's cycles below their budget, and a bound for later cycles.

#![expect(clippy::cast_precision_loss, reason = "counts and times of a check are far below 2^53")]

use super::report::{Report, ThreadReport};
use latlab_core::time::Nanos;

/// The longest cycle against its budget: the deadline or, without one, the period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// The longest response time.
    pub worst: Nanos,
    /// The budget.
    pub budget: Nanos,
    /// Number of cycles.
    pub cycles: u64,
    /// How many of them were longer.
    pub over: u64,
    /// The largest share of longer cycles that is compatible with these counts, with a confidence of 95 %, if
    /// cycles are independent of one another (Clopper and Pearson 1934). It is about three divided by the
    /// number of cycles where none was longer.
    pub share: f64,
    /// The same: one of at least so many cycles.
    pub one_in: u64,
}

/// Largest number of longer cycles for which the exact bound is computed: beyond it, Wilson's is as good.
const FEW: u64 = 1000;
/// One less the confidence.
const DOUBT: f64 = 0.05;

impl Margin {
    /// The margin of the thread that uses most of its budget. None if no thread has a budget.
    pub fn least(report: &Report) -> Option<(&ThreadReport, Margin)> {
        let used = |margin: &Margin| margin.worst.0 as f64 / margin.budget.0.max(1) as f64;
        let all = report.threads.iter().filter_map(|thread| Some((thread, Margin::of(thread)?)));
        all.max_by(|(_, a), (_, b)| used(a).total_cmp(&used(b)))
    }

    fn of(thread: &ThreadReport) -> Option<Margin> {
        let cycle = &thread.cycle;
        let budget = cycle.deadline.or(cycle.period).filter(|budget| *budget > Nanos(0))?;
        let (worst, cycles, over) = (cycle.response.max, cycle.count, cycle.overruns);
        let share = upper(over, cycles);
        Some(Margin { worst, budget, cycles, over, share, one_in: one_in(share) })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is at least 1, and at most the number of cycles"
)]
fn one_in(share: f64) -> u64 {
    (1.0 / share) as u64
}

/// The largest probability of an event for which so few `events` in so many `trials` are as
/// probable as `DOUBT`.
fn upper(events: u64, trials: u64) -> f64 {
    if events >= trials {
        return 1.0;
    }
    if events > FEW {
        return wilson(events as f64, trials as f64);
    }
    let (mut low, mut high) = (events as f64 / trials as f64, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at_most(events, trials, middle) > DOUBT { low = middle } else { high = middle }
    }
    high
}

/// The bound of the score test (Wilson 1927), for many events.
fn wilson(events: f64, trials: f64) -> f64 {
    /// Standard deviations of a normal distribution that leave the doubt on one side.
    const SCORE: f64 = 1.645;
    let square = SCORE * SCORE;
    let spread = SCORE * (events * (1.0 - events / trials) + square / 4.0).sqrt();
    (events + square / 2.0 + spread) / (trials + square)
}

/// The probability of at most so many events in so many trials, each of that probability.
fn at_most(events: u64, trials: u64, probability: f64) -> f64 {
    let (yes, no) = (probability.ln(), (-probability).ln_1p());
    let trials = trials as f64;
    let (mut choose, mut sum) = (0.0, 0.0);
    for count in 0..=events {
        let count = count as f64;
        sum += (choose + count * yes + (trials - count) * no).exp();
        choose += ((trials - count) / (count + 1.0)).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected}");
    }

    /// Values of Clopper and Pearson's limit.
    #[test]
    fn share_is_bounded_by_the_counts() {
        assert_near(upper(0, 300), 3.0 / 300.0);
        assert_near(upper(0, 1_000_000), 3.0 / 1_000_000.0);
        assert_near(upper(0, 10), 0.2589);
        assert_near(upper(1, 100), 0.0466);
        assert_near(upper(5, 10), 0.7776);
        assert_near(upper(10, 10), 1.0);
        assert_near(upper(1000, 10_000), 0.1051);
        assert_near(upper(2000, 10_000), 0.2067);
        assert_near(upper(u64::MAX - 1, u64::MAX), 1.0);
    }
}
