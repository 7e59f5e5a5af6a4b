//! Results of a study as a page of Markdown.

use super::{ResultColumns, bounds, grounds, kernels, lengths, options};
use latlab_core::record::Record;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use std::fmt::Write as _;

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
    let columns = ResultColumns::of(study, findings);
    text += "\n";
    text += &head(&columns.header());
    for row in &findings.rows {
        text += &line(&columns.row(row.label, &row.values));
    }
    text + &claims(findings)
}

/// Returns the table of claims; nothing if the study has none.
fn claims(findings: &Findings<'_>) -> String {
    if findings.claims.is_empty() {
        return String::new();
    }
    let header =
        ["claim of the paper", "source", "bound", "verdict", "measured"].map(str::to_owned);
    let mut text = format!("\n{}", head(&header));
    for (claim, judgement) in &findings.claims {
        let ground = grounds(&claim.text, &claim.why, judgement).join(". ");
        let verdict = format!("**{}**", judgement.word());
        let says = match claim.quote.as_str() {
            "" => claim.says.clone(),
            quote => format!("{} (“{quote}”)", claim.says),
        };
        text += &line(&[says, claim.source.clone(), bounds(claim).join("; "), verdict, ground]);
    }
    text
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
