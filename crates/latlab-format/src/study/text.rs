//! Results of a study as text for a terminal.

use super::{ResultColumns, grounds, kernels, lengths};
use crate::table::fitted;
use crate::text::plain_table;
use crate::width::Width;
use latlab_core::record::Record;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use std::fmt::Write as _;

/// Returns title, table and claims.
pub fn text(
    study: &Study,
    findings: &Findings<'_>,
    all: &[Option<Vec<Record>>],
    width: Width,
) -> String {
    let mut text = format!("{}\n{}; {}\n", study.title, study.paper, study.redoes);
    let _ = writeln!(text, "{}\n", kernels(all));
    if let Some(lengths) = lengths(all) {
        let _ = writeln!(text, "{lengths}\n");
    }
    text += &table(study, findings, width);
    text + &claims(findings)
}

fn table(study: &Study, findings: &Findings<'_>, width: Width) -> String {
    let columns = ResultColumns::of(study, findings);
    let header = columns.header();
    let mut table = plain_table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for row in &findings.rows {
        table.add_row(columns.row(row.label, &row.values));
    }
    fitted(table, width, &[]).text + "\n"
}

fn claims(findings: &Findings<'_>) -> String {
    if findings.claims.is_empty() {
        return String::new();
    }
    let mut text = "\nClaims of the paper:\n".to_owned();
    for (claim, judgement) in &findings.claims {
        let source = match claim.source.as_str() {
            "" => String::new(),
            source => format!(" ({source})"),
        };
        let _ = writeln!(text, "  {:<16}{}{source}", judgement.word(), claim.says);
        for change in &claim.changes {
            let _ = writeln!(text, "  {:<16}bound {change}", "");
        }
        for line in grounds(&claim.text, &claim.why, judgement) {
            let _ = writeln!(text, "  {:<16}{line}", "");
        }
    }
    text
}
