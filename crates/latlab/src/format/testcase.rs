//! Comparisons as test cases: one for each limit or, without limits, for each latency.

use latlab_core::compare::limit::{self, CheckedLimit};
use latlab_core::compare::{Comparison, Verdict};

/// A test case and its outcome.
#[derive(Debug)]
pub(crate) struct TestCase {
    pub(crate) name: String,
    pub(crate) outcome: TestOutcome,
    /// Reason for this outcome.
    pub(crate) reason: String,
}

/// Outcome of a test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestOutcome {
    Passed,
    Failed,
    /// There is no verdict.
    Skipped,
    /// A limit could not be evaluated.
    Error,
}

/// Returns a test case for each limit or, without limits, for each verdict.
pub(crate) fn cases(comparison: &Comparison, held: &[CheckedLimit]) -> Vec<TestCase> {
    if !held.is_empty() {
        return held.iter().map(limit_case).collect();
    }
    let latencies = comparison.latencies.iter().zip(comparison.latency_names());
    let latency_case = |(latency, name): (&latlab_core::compare::Latency, String)| {
        let outcome = match latency.verdict() {
            Verdict::Same | Verdict::Faster => TestOutcome::Passed,
            Verdict::Slower | Verdict::Mixed => TestOutcome::Failed,
            Verdict::Inconclusive => TestOutcome::Skipped,
        };
        TestCase { name, outcome, reason: latency.sentence() }
    };
    latencies
        .map(latency_case)
        .chain(comparison.unmatched.iter().map(|result| unmatched_case(result)))
        .collect()
}

/// A result that only one side has: a probe that has disappeared must not look like a success.
fn unmatched_case(result: &str) -> TestCase {
    let reason = "there is nothing to compare it with".to_owned();
    TestCase { name: result.to_owned(), outcome: TestOutcome::Skipped, reason }
}

fn limit_case(held: &CheckedLimit) -> TestCase {
    let outcome = match held.outcome {
        limit::Outcome::Within => TestOutcome::Passed,
        limit::Outcome::Over => TestOutcome::Failed,
        limit::Outcome::NotMeasured => TestOutcome::Error,
    };
    TestCase { name: format!("not {}", held.limit), outcome, reason: held.ground.clone() }
}
