//! Bounds as text, JSON and a picture. The text is a table of all, then the terms of each.

use super::grouped;
use super::picture;
use super::svg;
use super::table::fitted;
use super::text::plain_table;
use super::width::Width;
use latlab_core::bound::{ASSUMPTIONS, Row, Term, Vector};
use serde_json::json;
use std::fmt::Write as _;

/// Number of vectors that are shown.
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
    let meet = |vector: &&Vector| vector.times > 0;
    for vector in row.bound.interrupts.iter().filter(meet).take(SHOWN) {
        let what = format!("{} × {} of {}", vector.times, vector.name, vector.ns);
        table.add_row(["interrupts".to_owned(), vector.total().to_string(), what]);
    }
    text += &fitted(table, width, &[]).text;
    text + "\n"
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
