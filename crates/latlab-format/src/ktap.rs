//! Test cases as KTAP version 1 (the kernel's Documentation/dev-tools/ktap.rst).

use super::printable;
use super::testcase::{TestCase, TestOutcome};
use std::fmt::Write as _;

/// Returns the whole output.
pub fn lines(cases: &[TestCase]) -> String {
    let mut text = format!("KTAP version 1\n1..{}\n", cases.len());
    for (nth, case) in (1..).zip(cases) {
        let (name, reason) = (without_directive(&case.name), without_directive(&case.reason));
        let _ = match case.outcome {
            TestOutcome::Passed => writeln!(text, "# {reason}\nok {nth} {name}"),
            TestOutcome::Failed => writeln!(text, "# {reason}\nnot ok {nth} {name}"),
            TestOutcome::Skipped => writeln!(text, "ok {nth} {name} # SKIP {reason}"),
            TestOutcome::Error => writeln!(text, "not ok {nth} {name} # ERROR {reason}"),
        };
    }
    text
}

/// Removes `#`, which would end the name.
fn without_directive(text: &str) -> String {
    printable(text).replace('#', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ktap_case_is_a_numbered_line() {
        let case = |outcome| TestCase {
            name: "x.p99\n#1 > 5us".to_owned(),
            outcome,
            reason: "why".to_owned(),
        };
        let outcomes =
            [TestOutcome::Passed, TestOutcome::Failed, TestOutcome::Skipped, TestOutcome::Error];
        let expected = "KTAP version 1\n1..4\n# why\nok 1 x.p99 1 > 5us\n# why\n\
                        not ok 2 x.p99 1 > 5us\nok 3 x.p99 1 > 5us # SKIP why\n\
                        not ok 4 x.p99 1 > 5us # ERROR why\n";
        assert_eq!(lines(&outcomes.map(case)), expected);
    }
}
