//! Test cases as KTAP version 1, as the kernel's documentation has it (dev-tools/ktap).

use super::printable;
use super::testcase::{Passed, TestCase};
use std::fmt::Write as _;

/// All that is written to stdout.
pub(crate) fn lines(cases: &[TestCase]) -> String {
    let mut text = format!("KTAP version 1\n1..{}\n", cases.len());
    for (nth, case) in (1..).zip(cases) {
        let (name, ground) = (plain(&case.name), plain(&case.ground));
        let _ = match case.outcome {
            Passed::Yes => writeln!(text, "# {ground}\nok {nth} {name}"),
            Passed::No => writeln!(text, "# {ground}\nnot ok {nth} {name}"),
            Passed::Skipped => writeln!(text, "ok {nth} {name} # SKIP {ground}"),
            Passed::Error => writeln!(text, "not ok {nth} {name} # ERROR {ground}"),
        };
    }
    text
}

/// A `#` begins what is no name.
fn plain(text: &str) -> String {
    printable(text).replace('#', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_a_line_of_its_own_with_its_number() {
        let case = |outcome| TestCase {
            name: "x.p99\n#1 > 5us".to_owned(),
            outcome,
            ground: "why".to_owned(),
        };
        let outcomes = [Passed::Yes, Passed::No, Passed::Skipped, Passed::Error];
        let expected = "KTAP version 1\n1..4\n# why\nok 1 x.p99 1 > 5us\n# why\n\
                        not ok 2 x.p99 1 > 5us\nok 3 x.p99 1 > 5us # SKIP why\n\
                        not ok 4 x.p99 1 > 5us # ERROR why\n";
        assert_eq!(lines(&outcomes.map(case)), expected);
    }
}
