//! Results of a study as CSV (RFC 4180).

use latlab_core::study::Study;
use latlab_core::study::findings::Findings;
use std::fmt::Write as _;

/// Returns a line for each cell and figure: times in nanoseconds, empty if not measured.
pub(crate) fn csv(study: &Study, findings: &Findings<'_>) -> String {
    let mut text = "cell,figure,measured,unit,published\n".to_owned();
    for row in &findings.rows {
        for (figure, (value, published)) in study.figures.iter().zip(&row.values) {
            let measured = value.map(|value| value.value.to_string()).unwrap_or_default();
            let unit = if figure.kind() == 1 { "ns" } else { "" };
            let fields = [row.label, &figure.name, &measured, unit, published.unwrap_or_default()];
            let _ = writeln!(text, "{}", fields.map(field).join(","));
        }
    }
    text
}

fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_is_quoted_only_if_necessary() {
        assert_eq!(field("a"), "a");
        assert_eq!(field("about 0,4 \"s\""), "\"about 0,4 \"\"s\"\"\"");
    }
}
