//! What became of the claims of a paper.

use super::super::table::escaped;
use crate::format::study::grounds;
use latlab_core::study::claim::Verdict;
use latlab_core::study::findings::Findings;
use std::fmt::Write as _;

/// How many hold, in a sentence.
pub(super) fn tally(findings: &Findings<'_>) -> String {
    let count = |wanted: fn(&Verdict) -> bool| {
        findings.claims.iter().filter(|(_, judgement)| wanted(&judgement.verdict)).count()
    };
    let all = findings.claims.len();
    if all == 0 {
        return String::new();
    }
    let mut text = match (count(|verdict| *verdict == Verdict::Holds), all) {
        (holds, all) if holds == all => format!("All {all} claims hold"),
        (1, all) => format!("1 of {all} claims holds"),
        (holds, all) => format!("{holds} of {all} claims hold"),
    };
    match count(|verdict| *verdict == Verdict::Differs) {
        0 => {}
        1 => text += ", 1 differs",
        differ => {
            let _ = write!(text, ", {differ} differ");
        }
    }
    match count(|verdict| *verdict == Verdict::NoMore) {
        0 => {}
        1 => text += ", 1 holds no more",
        gone => {
            let _ = write!(text, ", {gone} hold no more");
        }
    }
    match count(|verdict| matches!(verdict, Verdict::NotMeasured(_))) {
        0 => {}
        1 => text += ", 1 was not measured",
        missing => {
            let _ = write!(text, ", {missing} were not measured");
        }
    }
    format!("<p class=\"verdict\">{text}</p>\n")
}

/// Each claim with its judgement and the ground of that.
pub(super) fn list(findings: &Findings<'_>) -> String {
    if findings.claims.is_empty() {
        return String::new();
    }
    let mut text = "<ul class=\"claims\">\n".to_owned();
    for (claim, judgement) in &findings.claims {
        let (class, mark) = match judgement.verdict {
            Verdict::Holds => ("holds", "✓"),
            Verdict::Differs | Verdict::NoMore => ("differs", "✗"),
            Verdict::NotMeasured(_) => ("missing", "–"),
        };
        let word = judgement.word();
        let _ = write!(
            text,
            "<li><span class=\"badge {class}\"><span aria-hidden=\"true\">{mark}</span> {word}\
             </span><div><p>{}",
            escaped(&claim.says)
        );
        if !claim.source.is_empty() {
            let _ = write!(text, " <span class=\"where\">{}</span>", escaped(&claim.source));
        }
        text += "</p>\n";
        for line in grounds(&claim.text, &claim.why, judgement) {
            let line = escaped(&line).replace(" us", " µs");
            let _ = writeln!(text, "<p class=\"ground\">{line}</p>");
        }
        text += "</div></li>\n";
    }
    text + "</ul>\n"
}
