//! Comparisons as test cases: one for each limit or, without limits, for each latency.

use latlab_core::compare::limit::{self, CheckedLimit};
use latlab_core::compare::{Comparison, Latency, Verdict};

/// A test case and its outcome.
#[derive(Debug)]
pub struct TestCase {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub outcome: TestOutcome,
    /// Reason for this outcome.
    pub reason: String,
}

/// Outcome of a test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    /// It holds.
    Passed,
    /// It does not hold.
    Failed,
    /// There is no verdict.
    Skipped,
    /// A limit could not be evaluated.
    Error,
}

/// Returns a test case for each limit or, without limits, for each verdict.
pub fn cases(comparison: &Comparison, held: &[CheckedLimit]) -> Vec<TestCase> {
    if !held.is_empty() {
        return held.iter().map(limit_case).collect();
    }
    let latencies = comparison.latencies.iter().zip(comparison.latency_names());
    let lost = comparison.lost_runs(true);
    let latency_case = |(latency, name): (&Latency, String)| {
        let (outcome, reason) = match (latency.verdict(), &lost) {
            (Verdict::Inconclusive, _) => (TestOutcome::Skipped, latency.sentence()),
            // Less load in A may be why B is slower, less load in B why it is not.
            (Verdict::Slower | Verdict::Mixed, _) if comparison.lost_part.0 == 0 => {
                (TestOutcome::Failed, latency.sentence())
            }
            (_, Some(lost)) => (TestOutcome::Skipped, lost.clone()),
            (_, None) => (TestOutcome::Passed, latency.sentence()),
        };
        TestCase { name, outcome, reason }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::source;
    use latlab_core::compare::compare;
    use latlab_core::machine::TimeDomain;
    use latlab_core::record::{Warning, WarningCode};

    /// The case of runs with these warnings; B is as many times slower as `times`.
    fn case(a: &[WarningCode], b: &[WarningCode], times: u64) -> TestCase {
        let run = |codes: &[WarningCode], times| {
            let mut record = source("run", times).record;
            record.machine.time_domain = TimeDomain::Instructions;
            record.warnings = codes.iter().map(|code| Warning::new(*code, "a reason")).collect();
            [record]
        };
        let comparison = compare(&run(a, 1), &run(b, times)).expect("both measure alike");
        cases(&comparison, &[]).swap_remove(0)
    }

    #[test]
    fn verdict_that_a_lost_load_may_explain_is_skipped() {
        let lost = [WarningCode::LoadEnded];
        assert_eq!(case(&[], &[], 1).outcome, TestOutcome::Passed);
        assert_eq!(case(&[], &lost, 1).outcome, TestOutcome::Skipped);
        assert_eq!(case(&[], &lost, 2).outcome, TestOutcome::Failed);
        assert_eq!(case(&lost, &[], 2).outcome, TestOutcome::Skipped);
        assert_eq!(
            case(&[], &lost, 1).reason,
            "1 run of B lost a load, a measured CPU or a setting"
        );
    }
}
