//! Studies in text, Markdown and CSV: what was measured beside what was published, and the claims.

use super::grouped;
use super::text::plain_table;
use latlab_core::plan::{Length, Plan};
use latlab_core::record::Record;
use latlab_core::study::Study;
use latlab_core::study::claim::{Judgement, Verdict};
use latlab_core::study::findings::Findings;
use latlab_core::study::pieces;
use latlab_core::study::quantity::Quantity;
use std::fmt::Write as _;

/// What `--check` says of a study without a fault.
pub(crate) fn checked(name: &str, study: &Study) -> String {
    format!(
        "{name}: {} cells, {} figures, {} claims; nothing is wrong\n",
        study.cells.len(),
        study.figures.len(),
        study.claims.len()
    )
}

/// The cells with their numbers.
pub(crate) fn cells(study: &Study, plans: &[Vec<Plan>]) -> String {
    let mut table =
        plain_table(&["", "cell", "on", "probes", "scans", "loads", "adapt", "length", "repeat"]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    for (nth, (cell, plans)) in study.cells.iter().zip(plans).enumerate() {
        let Some(plan) = plans.first() else { continue };
        let written = |words: &Option<Vec<latlab_core::study::Words>>| {
            let all: Vec<&str> = words.iter().flatten().map(|words| words.text.as_str()).collect();
            if all.is_empty() { "–".to_owned() } else { all.join(" ") }
        };
        let length = match plan.length {
            Length::For(time) => time.to_string(),
            Length::Count(count) => format!("{} times", grouped(count)),
        };
        let adapt = if plan.adapt.is_empty() { "–".to_owned() } else { plan.adapt.join(",") };
        table.add_row([
            (nth + 1).to_string(),
            cell.label.clone(),
            plan.target.clone(),
            written(&cell.terms.probes),
            written(&cell.terms.scans),
            written(&cell.terms.loads),
            adapt,
            length,
            plans.len().to_string(),
        ]);
    }
    table.trim_fmt() + "\n"
}

/// What of a study's result is in its table, in the order of the columns.
struct Columns {
    /// Each figure, and whether the paper has printed any of its values.
    figures: Vec<(String, bool)>,
}

impl Columns {
    fn of(study: &Study, findings: &Findings<'_>) -> Columns {
        let published = |nth: usize| findings.rows.iter().any(|row| row.values[nth].1.is_some());
        let figures = study.figures.iter().enumerate();
        Columns { figures: figures.map(|(nth, one)| (one.title.clone(), published(nth))).collect() }
    }

    fn header(&self) -> Vec<String> {
        let mut header = vec!["cell".to_owned()];
        for (title, published) in &self.figures {
            header.push(title.clone());
            if *published {
                header.push("published".to_owned());
            }
        }
        header
    }

    fn row(&self, label: &str, values: &[(Option<Quantity>, Option<&str>)]) -> Vec<String> {
        let mut row = vec![label.to_owned()];
        for ((value, printed), (_, published)) in values.iter().zip(&self.figures) {
            row.push(value.map_or_else(|| "–".to_owned(), shown));
            if *published {
                row.push(printed.unwrap_or("–").to_owned());
            }
        }
        row
    }
}

/// A large or whole number with its digits in groups, as all counts are shown.
pub(crate) fn shown(value: Quantity) -> String {
    let large = value.value >= 1_000.0 || value.value.fract() == 0.0;
    if value.time == 0 && large && (0.0..1e15).contains(&value.value) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole, not negative, and below 2^53"
        )]
        return grouped(value.value.round() as u64);
    }
    value.to_string()
}

/// The study for a terminal.
pub(crate) fn text(study: &Study, findings: &Findings<'_>, all: &[Option<Vec<Record>>]) -> String {
    let mut text = format!("{}\n{}; {}\n", study.title, study.paper, study.redoes);
    let _ = writeln!(text, "{}\n", kernels(all));
    if let Some(lengths) = lengths(all) {
        let _ = writeln!(text, "{lengths}\n");
    }
    let columns = Columns::of(study, findings);
    let header = columns.header();
    let mut table = plain_table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for row in &findings.rows {
        table.add_row(columns.row(row.label, &row.values));
    }
    text += &table.trim_fmt();
    text += "\n";
    if !findings.claims.is_empty() {
        text += "\nThe paper's claims:\n";
    }
    for (claim, judgement) in &findings.claims {
        let source =
            if claim.source.is_empty() { String::new() } else { format!(" ({})", claim.source) };
        let _ = writeln!(text, "  {:<14}{}{source}", judgement.word(), claim.says);
        for line in grounds(&claim.text, &claim.why, judgement) {
            let _ = writeln!(text, "  {:<14}{line}", "");
        }
    }
    text
}

/// Why a claim is judged as it is, line by line.
pub(crate) fn grounds(claim: &str, why: &str, judgement: &Judgement) -> Vec<String> {
    let ground = judgement.ground();
    match judgement.verdict {
        Verdict::Differs | Verdict::NoMore => {
            let mut lines = vec![format!("{ground}; not {claim}")];
            if !why.is_empty() {
                lines.push(why.to_owned());
            }
            lines
        }
        Verdict::Holds | Verdict::NotMeasured(_) => vec![ground],
    }
}

/// The study as a page of Markdown.
pub(crate) fn markdown(
    name: &str,
    study: &Study,
    findings: &Findings<'_>,
    all: &[Option<Vec<Record>>],
) -> String {
    let mut text = format!("# {}\n\n{}; {}.\n", study.title, study.paper, study.redoes);
    if !study.about.is_empty() {
        let _ = write!(text, "\n{}\n", study.about);
    }
    let _ = writeln!(text, "\n{}", kernels(all));
    if let Some(lengths) = lengths(all) {
        let _ = writeln!(text, "{lengths}");
    }
    if !study.source.is_empty() {
        let _ = writeln!(text, "Published: {}.", study.source);
    }
    let lasting = lasting(study);
    let _ = writeln!(text, "Measured again by `latlab study {name}{lasting} --out DIR`.");
    let columns = Columns::of(study, findings);
    let _ = write!(text, "\n{}", line(&columns.header()));
    let _ = write!(text, "{}", line(&vec!["---".to_owned(); columns.header().len()]));
    for row in &findings.rows {
        text += &line(&columns.row(row.label, &row.values));
    }
    if !findings.claims.is_empty() {
        text += "\n| the paper's claim | where | today | measured |\n| --- | --- | --- | --- |\n";
    }
    for (claim, judgement) in &findings.claims {
        let ground = grounds(&claim.text, &claim.why, judgement).join(". ");
        let word = format!("**{}**", judgement.word());
        text += &line(&[claim.says.clone(), claim.source.clone(), word, ground]);
    }
    text
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// One line for each value: times in nanoseconds, and what was not measured empty.
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

/// A field of CSV (RFC 4180).
fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// What a command says besides, where cells were measured for longer or shorter than the study has.
pub(crate) fn lasting(study: &Study) -> String {
    study.lasting.map(|time| format!(" --for {}ns", time.0)).unwrap_or_default()
}

/// How long cells were measured and how often, where that was the same for all that have a probe.
pub(crate) fn lengths(all: &[Option<Vec<Record>>]) -> Option<String> {
    let probed = |cell: &&Vec<Record>| cell.iter().any(|record| !record.plan.probes.is_empty());
    let mut cells =
        all.iter().flatten().filter(probed).map(|cell| (cell[0].plan.length, cell.len()));
    let (length, times) = cells.next()?;
    if !cells.all(|cell| cell == (length, times)) {
        return None;
    }
    let mut text = match length {
        Length::For(time) => format!("Each cell was measured for {time}"),
        Length::Count(1) => "In each cell one sample was taken of each probe".to_owned(),
        Length::Count(count) => {
            format!("In each cell {} samples were taken of each probe", grouped(count))
        }
    };
    let number = pieces::number(length, pieces::LONGEST);
    if number > 1 {
        let _ = write!(text, ", in {number} pieces");
    }
    if times > 1 {
        let _ = write!(text, ", {times} times with seeds of their own");
    }
    Some(text + ".")
}

/// Which kernels were measured, each once.
pub(crate) fn kernels(all: &[Option<Vec<Record>>]) -> String {
    let mut kernels: Vec<String> = Vec::new();
    for record in all.iter().flatten().flatten() {
        let kernel = format!("{} (Linux {})", record.plan.target, record.machine.kernel);
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }
    if kernels.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("Measured on {}.", kernels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::picture::tests::source;
    use latlab_core::time::Nanos;

    #[test]
    fn fields_keep_what_is_in_them() {
        assert_eq!(field("a"), "a");
        assert_eq!(field("about 0,4 \"s\""), "\"about 0,4 \"\"s\"\"\"");
        assert_eq!(line(&["a|b".to_owned(), "c\nd".to_owned()]), "| a\\|b | c d |\n");
    }

    #[test]
    fn how_long_cells_were_measured_is_said_where_all_were_alike() {
        let mut record = source("", 1).record;
        let mut cell = |length, times: usize| {
            record.plan.length = length;
            Some(vec![record.clone(); times])
        };
        let [short, long] = [1, 3_600].map(|seconds| Length::For(Nanos::from_secs(seconds)));
        let (once, count) = (cell(short, 1), cell(Length::Count(1_000), 3));
        let said = |cells: &[_]| lengths(cells).unwrap_or_default();
        assert_eq!(said(&[once.clone(), None, once.clone()]), "Each cell was measured for 1 s.");
        assert_eq!(
            said(std::slice::from_ref(&count)),
            "In each cell 1\u{202f}000 samples were taken of each probe, 3 times with seeds of their own."
        );
        let single = cell(Length::Count(1), 1);
        assert_eq!(said(&[single]), "In each cell one sample was taken of each probe.");
        assert_eq!(said(&[cell(long, 1)]), "Each cell was measured for 1 h, in 12 pieces.");
        assert_eq!(said(&[once, count]), "");
        assert_eq!(said(&[None]), "");
    }

    #[test]
    fn a_study_without_claims_has_no_place_for_them() {
        const STUDY: &str = r#"
            title = "T"
            paper = "P"
            redoes = "figure 1"
            plan = { probes = ["cyclic"], on = "native", for = "1s" }
            axis = [{ name = "host", each = [{ label = "a" }] }]
            figure = [{ name = "worst", probe = "cyclic", take = "max" }]
        "#;
        let study = |claim: &str| Study::read(&format!("{STUDY}{claim}")).unwrap();
        let said = |study: &Study| {
            let findings = study.findings(&[None]);
            text(study, &findings, &[None]) + &markdown("t", study, &findings, &[None])
        };
        let none = said(&study(""));
        assert!(none.contains("worst") && !none.contains("claim"), "{none}");
        let one = said(&study(r#"claim = [{ says = "S", claim = "a.worst < 1ms" }]"#));
        assert_eq!(one.matches("claim").count(), 2, "{one}");
    }

    #[test]
    fn counts_have_groups_and_ratios_four_digits() {
        assert_eq!(shown(Quantity::number(12_345.0)), "12\u{202f}345");
        assert_eq!(shown(Quantity::number(1_725.5)), "1\u{202f}726");
        assert_eq!(shown(Quantity::number(3.714_159)), "3.714");
        assert_eq!(shown(Quantity { value: 1_500.0, time: 1 }), "1.5 us");
    }
}
