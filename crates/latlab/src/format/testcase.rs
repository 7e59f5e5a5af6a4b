//! A comparison as test cases: one for each limit or, where none was given, for each latency.

use latlab_core::compare::limit::{Held, Outcome};
use latlab_core::compare::{Comparison, Verdict};

/// One test case.
#[derive(Debug)]
pub(crate) struct TestCase {
    pub(crate) name: String,
    pub(crate) outcome: Passed,
    /// Why, in words.
    pub(crate) ground: String,
}

/// What became of a test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Yes,
    No,
    /// It says nothing.
    Skipped,
    /// It should say something, and can't.
    Error,
}

/// The limits or, without any, the verdicts.
pub(crate) fn of(comparison: &Comparison, held: &[Held]) -> Vec<TestCase> {
    if !held.is_empty() {
        return held.iter().map(of_limit).collect();
    }
    let latencies = comparison.latencies.iter().zip(comparison.latency_names());
    let of_latency = |(latency, name): (&latlab_core::compare::Latency, String)| {
        let outcome = match latency.verdict() {
            Verdict::Same | Verdict::Faster => Passed::Yes,
            Verdict::Slower | Verdict::Both => Passed::No,
            Verdict::Unknown => Passed::Skipped,
        };
        TestCase { name, outcome, ground: latency.sentence() }
    };
    latencies
        .map(of_latency)
        .chain(comparison.unmatched.iter().map(|what| unmatched(what)))
        .collect()
}

/// What only one side has: a probe that is gone must not look as if all were well.
fn unmatched(what: &str) -> TestCase {
    let ground = "there is nothing to compare it with".to_owned();
    TestCase { name: what.to_owned(), outcome: Passed::Skipped, ground }
}

fn of_limit(held: &Held) -> TestCase {
    let outcome = match held.outcome {
        Outcome::Within => Passed::Yes,
        Outcome::Over => Passed::No,
        Outcome::NotMeasured => Passed::Error,
    };
    TestCase { name: format!("not {}", held.limit), outcome, ground: held.ground.clone() }
}
