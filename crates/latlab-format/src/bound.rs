//! Bounds as text, JSON and a picture. The text is a table of all, then the terms of each.

use super::grouped;
use super::picture;
use super::svg;
use super::table::fitted;
use super::text::plain_table;
use super::width::Width;
use latlab_core::bound::{ASSUMPTIONS, Bound, LOOSE, Row, Term, Vector};
use latlab_core::time::Nanos;
use serde_json::json;
use std::fmt::Write as _;

/// Number of vectors that have a row of their own.
const SHOWN: usize = 4;

/// Returns the table, the terms of each bound, and the assumptions.
pub fn text(rows: &[Row], width: Width) -> String {
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
    for row in rows.iter().filter(|row| row.is_loose()) {
        let _ = writeln!(text, "{}", loose(row));
    }
    for row in rows {
        text += &terms(row, width);
    }
    for assumption in ASSUMPTIONS {
        let _ = write!(text, "\n{assumption}");
    }
    text + "\n"
}

/// The verdict on a bound that is far above the measured maximum.
fn loose(row: &Row) -> String {
    format!(
        "{} under {}: too loose to say anything: {:.0} times the measured maximum, more than {LOOSE}: \
         more --seeds may meet longer latencies",
        row.target,
        row.load,
        row.ratio()
    )
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
    let mut rows: Vec<(Nanos, String)> =
        shown.iter().map(|vector| (vector.total, met(vector))).collect();
    if !others.is_empty() {
        let total = others.iter().fold(Nanos(0), |sum, vector| sum + vector.total);
        let vectors = if others.len() == 1 { "vector" } else { "vectors" };
        rows.push((total, format!("{} other {vectors}", others.len())));
    }
    rows
}

/// The interrupts of a vector that meet a wake-up; of several, the longest one by itself may come at
/// another time.
fn met(Vector { name, times, ns, .. }: &Vector) -> String {
    match times {
        1 => format!("1 × {name}"),
        _ => format!("{times} × {name}, the longest of all {ns}"),
    }
}

/// Returns the rows and the assumptions as JSON.
pub fn json(rows: &[Row]) -> String {
    let value = json!({ "bounds": rows, "assumptions": ASSUMPTIONS });
    serde_json::to_string_pretty(&value).expect("it is plain data") + "\n"
}

/// Returns a picture of the bounds (at least one) beside the measured maxima.
pub fn svg(rows: &[Row]) -> String {
    svg::draw(&picture::bound::chart(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::bound::Section;

    /// The bound of six vectors of 1 to 6 ns, two interrupts of each.
    fn row() -> Row {
        let section = |ns| Section { ns: Nanos(ns), begin: "a".to_owned(), end: "b".to_owned() };
        let vector = |ns: u64| {
            let (name, total) = (format!("irq_{ns}"), Nanos(2 * ns - 1));
            Vector { name, total, times: 2, ns: Nanos(ns) }
        };
        let bound = Bound {
            ns: Nanos(100 + 30 + 200 + 36 + 7),
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

    #[test]
    fn bound_of_more_than_ten_times_the_maximum_is_said_to_be_loose() {
        let loose = |maximum| {
            let text = text(&[Row { maximum: Nanos(maximum), ..row() }], Width::UNLIMITED);
            text.contains(
                "lab:rt under none: too loose to say anything: 11 times the measured maximum",
            )
        };
        assert_eq!([300, 38, 34].map(loose), [false, false, true]);
    }
}
