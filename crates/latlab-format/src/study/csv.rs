//! Results of a study as CSV (RFC 4180).

use super::{bounds, grounds};
use crate::csv::lines;
use latlab_core::study::Study;
use latlab_core::study::findings::Findings;

/// Returns a line for each cell and figure: times in nanoseconds, empty if not measured.
pub fn csv(study: &Study, findings: &Findings<'_>) -> String {
    let header = ["cell", "figure", "measured", "unit", "published"].map(str::to_owned);
    let rows = findings.rows.iter().flat_map(|row| {
        study.figures.iter().zip(&row.values).map(|(figure, (value, published))| {
            let measured = value.map(|value| value.value.to_string()).unwrap_or_default();
            let unit = if figure.kind() == 1 { "ns" } else { "" };
            let published = published.unwrap_or_default();
            [row.label, &figure.name, &measured, unit, published].map(str::to_owned)
        })
    });
    lines(std::iter::once(header).chain(rows))
}

/// Returns a line for each claim: its words, the paper's words if the study quotes them, the bound
/// and its changes, the verdict, and the compared values.
pub fn claims(findings: &Findings<'_>) -> String {
    let header = ["claim", "sentence", "source", "bound", "verdict", "measured"].map(str::to_owned);
    let rows = findings.claims.iter().map(|(claim, judgement)| {
        let ground = grounds(&claim.text, &claim.why, judgement).join(". ");
        let [says, quote, source] = [&claim.says, &claim.quote, &claim.source].map(String::clone);
        [says, quote, source, bounds(claim).join("; "), judgement.word().to_owned(), ground]
    });
    lines(std::iter::once(header).chain(rows))
}
