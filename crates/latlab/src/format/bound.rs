//! Bounds as text, JSON and a picture. The text is a table of all, then the terms of each.

use super::grouped;
use super::picture;
use super::svg;
use super::table::fitted;
use super::text::plain_table;
use super::width::Width;
use latlab_core::bound::{ASSUMPTIONS, Bound, Row, Term, Vector};
use latlab_core::time::Nanos;
use serde_json::json;
use std::fmt::Write as _;

/// Number of vectors that have a row of their own.
const SHOWN: usize = 4;

/// Returns the table, the terms of each bound, and the assumptions.
pub(crate) fn text(rows: &[Row], width: Width) -> String {
    let heads = ["target", "load", "runs", "samples", "bound", "measured maximum", "ratio"];
    let mut table = plain_table(&heads);
    for row in rows {
        table.add_row([
            row.target.clone(),
            row.load.clone(),
            row.runs.to_string(),
            grouped(row.samples),
            row.bound.ns.to_string(),
            row.maximum.to_string(),
            format!("{:.2}", row.ratio()),
        ]);
    }
    let mut text = fitted(table, width, &[3, 2]).text + "\n";
    for row in rows {
        text += &terms(row, width);
    }
    for assumption in ASSUMPTIONS {
        let _ = write!(text, "\n{assumption}");
    }
    text + "\n"
}

/// The terms of one bound.
fn terms(row: &Row, width: Width) -> String {
    let preempt = row.preempt.as_ref().map(|model| format!(", preempt={model}"));
    let mut text = format!(
        "\n{} under {} (Linux {}{}): at most {}\n",
        row.target,
        row.load,
        row.kernel,
        preempt.unwrap_or_default(),
        row.bound.ns
    );
    let mut table = plain_table(&["term", "longest", "from and to"]);
    table.add_row(["timer".to_owned(), row.bound.timer.to_string(), String::new()]);
    for term in Term::ALL {
        let Some(section) = row.bound.section(term) else { continue };
        let unused = if row.bound.counts(term) { "" } else { " (shorter: does not count)" };
        let functions = format!("{} … {}{unused}", section.begin, section.end);
        table.add_row([term.name().to_owned(), section.ns.to_string(), functions]);
    }
    for (time, what) in interrupts(&row.bound) {
        table.add_row(["interrupts".to_owned(), time.to_string(), what]);
    }
    if row.bound.uncertain > Nanos(0) {
        let what = "by which the count of instructions may be wrong".to_owned();
        table.add_row(["uncertain".to_owned(), row.bound.uncertain.to_string(), what]);
    }
    text += &fitted(table, width, &[]).text;
    text + "\n"
}

/// The time that the interrupts of each vector take, those after the first few together.
fn interrupts(bound: &Bound) -> Vec<(Nanos, String)> {
    let all: Vec<&Vector> = bound.interrupts.iter().filter(|vector| vector.times > 0).collect();
    let (shown, others) = all.split_at(all.len().min(SHOWN));
    let what = |vector: &Vector| format!("{} × {} of {}", vector.times, vector.name, vector.ns);
    let mut rows: Vec<(Nanos, String)> =
        shown.iter().map(|vector| (vector.total(), what(vector))).collect();
    if !others.is_empty() {
        let total = others.iter().fold(Nanos(0), |sum, vector| sum + vector.total());
        let vectors = if others.len() == 1 { "vector" } else { "vectors" };
        rows.push((total, format!("{} other {vectors}", others.len())));
    }
    rows
}

/// Returns the rows and the assumptions as JSON.
pub(crate) fn json(rows: &[Row]) -> String {
    let value = json!({ "bounds": rows, "assumptions": ASSUMPTIONS });
    serde_json::to_string_pretty(&value).expect("it is plain data") + "\n"
}

/// Returns a picture of the bounds, of which there is at least one, beside the measured maxima.
pub(crate) fn svg(rows: &[Row]) -> String {
    svg::draw(&picture::bound::chart(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::bound::Section;

    /// The bound of six vectors of 1 to 6 ns, two interrupts of each.
    fn row() -> Row {
        let section = |ns| Section { ns: Nanos(ns), begin: "a".to_owned(), end: "b".to_owned() };
        let vector = |ns: u64| Vector { name: format!("irq_{ns}"), ns: Nanos(ns), times: 2 };
        let bound = Bound {
            ns: Nanos(100 + 30 + 200 + 42 + 7),
            timer: Nanos(100),
            uncertain: Nanos(7),
            sections: [(Term::Poid, section(30)), (Term::Psd, section(200))].into(),
            interrupts: (1..=6).rev().map(vector).collect(),
        };
        let [target, load, kernel] = ["lab:rt", "none", "6.12"].map(str::to_owned);
        let (runs, samples, maximum) = (1, 1, Nanos(300));
        Row { target, load, kernel, preempt: None, runs, samples, maximum, bound }
    }

    #[test]
    fn terms_add_up_to_the_bound() {
        let row = row();
        let text = terms(&row, Width::UNLIMITED);
        let time = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
        let table = || text.lines().skip_while(|line| !line.starts_with("term")).skip(1);
        assert_eq!(table().filter_map(time).sum::<u64>(), row.bound.ns.0, "{text}");
        assert!(text.contains("6 ns") && text.contains("2 other vectors"), "{text}");
        let mut sure = row;
        sure.bound.uncertain = Nanos(0);
        sure.bound.interrupts.truncate(4);
        let text = terms(&sure, Width::UNLIMITED);
        assert!(!text.contains("uncertain") && !text.contains("other"), "{text}");
    }
}
