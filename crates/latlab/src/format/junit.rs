//! Test cases as `JUnit` XML, as continuous integration reads it: one suite, without times, as nothing
//! ran.

use super::printable;
use super::testcase::{Passed, TestCase};
use std::fmt::Write as _;

/// The whole file.
pub(crate) fn xml(cases: &[TestCase]) -> String {
    let count = |outcome| cases.iter().filter(|case| case.outcome == outcome).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        count(Passed::No),
        count(Passed::Error),
        count(Passed::Skipped)
    );
    // Not every reader takes skipped tests of all suites together.
    let (all, _) = counts.split_once(" skipped").unwrap_or((&counts, ""));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"latlab\" {all}>\n\
         \x20 <testsuite name=\"latlab compare\" {counts}>\n"
    );
    for case in cases {
        let (name, ground) = (escaped(&case.name), escaped(&case.ground));
        let _ = writeln!(xml, "    <testcase name=\"{name}\" classname=\"latlab.compare\">");
        let _ = match case.outcome {
            Passed::Yes => writeln!(xml, "      <system-out>{ground}</system-out>"),
            Passed::No => writeln!(xml, "      <failure message=\"{ground}\"/>"),
            Passed::Skipped => writeln!(xml, "      <skipped message=\"{ground}\"/>"),
            Passed::Error => writeln!(xml, "      <error message=\"{ground}\"/>"),
        };
        xml += "    </testcase>\n";
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

fn escaped(text: &str) -> String {
    let text = printable(text).replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_element_and_nothing_becomes_markup() {
        let case = |outcome| TestCase {
            name: "a < \"b\" & c".to_owned(),
            outcome,
            ground: "x\u{1b}<y>".to_owned(),
        };
        let outcomes = [Passed::Yes, Passed::No, Passed::Skipped, Passed::Error];
        let xml = xml(&outcomes.map(case));
        assert!(xml.contains("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""), "{xml}");
        assert_eq!(xml.matches("name=\"a &lt; &quot;b&quot; &amp; c\"").count(), 4, "{xml}");
        for element in ["failure", "skipped", "error"] {
            assert!(xml.contains(&format!("<{element} message=\"x &lt;y&gt;\"/>")), "{xml}");
        }
    }
}
