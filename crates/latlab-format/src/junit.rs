//! Test cases as `JUnit` XML for continuous integration: one suite, without durations.

use super::printable;
use super::testcase::{TestCase, TestOutcome};
use maud::Render as _;
use std::fmt::Write as _;

/// Returns the file with the test cases of a command.
pub fn xml(command: &str, cases: &[TestCase]) -> String {
    let count = |outcome| cases.iter().filter(|case| case.outcome == outcome).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        count(TestOutcome::Failed),
        count(TestOutcome::Error),
        count(TestOutcome::Skipped)
    );
    // Not every reader knows `skipped` on the outer element.
    let (all, _) = counts.split_once(" skipped").unwrap_or((&counts, ""));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"latlab\" {all}>\n\
         \x20 <testsuite name=\"latlab {command}\" {counts}>\n"
    );
    for case in cases {
        let (name, reason) = (escaped(&case.name), escaped(&case.reason));
        let _ = writeln!(xml, "    <testcase name=\"{name}\" classname=\"latlab.{command}\">");
        let _ = match case.outcome {
            TestOutcome::Passed => writeln!(xml, "      <system-out>{reason}</system-out>"),
            TestOutcome::Failed => writeln!(xml, "      <failure message=\"{reason}\"/>"),
            TestOutcome::Skipped => writeln!(xml, "      <skipped message=\"{reason}\"/>"),
            TestOutcome::Error => writeln!(xml, "      <error message=\"{reason}\"/>"),
        };
        xml += "    </testcase>\n";
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

/// Escapes a text for an element or an attribute in double quotes; XML and HTML agree on these.
fn escaped(text: &str) -> String {
    printable(text).render().into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junit_has_element_for_each_outcome_and_escapes_text() {
        let case = |outcome| TestCase {
            name: "a < \"b\" & c".to_owned(),
            outcome,
            reason: "x\u{1b}<y>".to_owned(),
        };
        let outcomes =
            [TestOutcome::Passed, TestOutcome::Failed, TestOutcome::Skipped, TestOutcome::Error];
        let xml = xml("compare", &outcomes.map(case));
        assert!(xml.contains("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""), "{xml}");
        assert_eq!(xml.matches("name=\"a &lt; &quot;b&quot; &amp; c\"").count(), 4, "{xml}");
        for element in ["failure", "skipped", "error"] {
            assert!(xml.contains(&format!("<{element} message=\"x &lt;y&gt;\"/>")), "{xml}");
        }
    }
}
