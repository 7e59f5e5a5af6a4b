//! Results of a study as a page of Markdown.

use super::{ResultColumns, kernels, lengths, options, reason};
use latlab_core::record::Record;
use latlab_core::study::claim::{ClaimVerdict, Judgement};
use latlab_core::study::findings::Findings;
use latlab_core::study::{PaperClaim, Study};
use std::fmt::Write as _;

/// The most values of a table on a page: table.csv has the others.
const MOST_VALUES: usize = 200;

/// Returns the page. `name` is the name of the study on the command line.
pub fn markdown(
    name: &str,
    study: &Study,
    findings: &Findings<'_>,
    all: &[Option<Vec<Record>>],
) -> String {
    let mut measured = format!("{}\n", kernels(all));
    if let Some(lengths) = lengths(all) {
        let _ = writeln!(measured, "{lengths}");
    }
    if !study.source.is_empty() {
        let _ = writeln!(measured, "Published: {}.", study.source);
    }
    let options = options(study);
    let _ = writeln!(measured, "Reproduce with `latlab study {name}{options} --out DIR`.");
    page(study, findings, &measured)
}

/// Returns the page. `measured` says what was measured, and how.
pub fn page(study: &Study, findings: &Findings<'_>, measured: &str) -> String {
    let mut text = format!("# {}\n\n{}; {}.\n", study.title, study.paper, study.redoes);
    if !study.about.is_empty() {
        let _ = write!(text, "\n{}\n", study.about);
    }
    let _ = write!(text, "\n{measured}");
    text + &values(study, findings) + &claims(findings)
}

/// Returns the table of values, or where it is.
fn values(study: &Study, findings: &Findings<'_>) -> String {
    let cells = findings.rows.len();
    if cells * study.figures.len() > MOST_VALUES {
        return format!("\nValues of the {cells} cells: [table.csv](table.csv).\n");
    }
    let columns = ResultColumns::of(study, findings);
    let mut text = format!("\n{}", head(&columns.header()));
    for row in &findings.rows {
        text += &line(&columns.row(row.label, &row.values));
    }
    text
}

/// Returns the claims by verdict; nothing if the study has none. The measured values are repeated
/// only for claims that do not hold.
fn claims(findings: &Findings<'_>) -> String {
    if findings.claims.is_empty() {
        return String::new();
    }
    let mut text =
        "\n## Claims\n\nSentences, sources, bounds and values: [claims.csv](claims.csv).\n"
            .to_owned();
    for verdict in ["holds", "by construction", "differs", "no longer holds", "not measured"] {
        let claims = findings.claims.iter().filter(|(_, one)| one.word() == verdict);
        let lines: String = claims.map(|(claim, one)| item(claim, one)).collect();
        if !lines.is_empty() {
            let _ = write!(text, "\n**{verdict}**\n\n{lines}");
        }
    }
    text
}

/// Returns a claim as an item of a list.
fn item(claim: &PaperClaim, judgement: &Judgement) -> String {
    let why = match judgement.verdict {
        ClaimVerdict::Holds | ClaimVerdict::ByConstruction => String::new(),
        ClaimVerdict::NotMeasured(_) => format!(": {}", judgement.ground()),
        ClaimVerdict::Differs | ClaimVerdict::NoLongerHolds => {
            format!(": {}. {}", judgement.ground(), reason(&claim.why))
        }
    };
    let text = format!("{}{why}", claim.says).replace('\n', " ");
    format!("- {text}\n")
}

/// The header of a table and the line below it.
fn head(header: &[String]) -> String {
    line(header) + &line(&vec!["---".to_owned(); header.len()])
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_with_pipe_and_newline_stays_one_cell() {
        assert_eq!(line(&["a|b".to_owned(), "c\nd".to_owned()]), "| a\\|b | c d |\n");
    }
}
