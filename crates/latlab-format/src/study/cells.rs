//! The cells of a study as a text table, for `--list-cells`.

use crate::grouped;
use crate::table::fitted;
use crate::text::plain_table;
use crate::width::Width;
use comfy_table::CellAlignment;
use latlab_core::plan::{Length, Plan};
use latlab_core::study::{SpannedText, Study};

/// Returns a row for each cell, with the number that `--cell` takes.
pub fn cells(study: &Study, plans: &[Vec<Plan>], width: Width) -> String {
    let mut table =
        plain_table(&["", "cell", "on", "probes", "scans", "loads", "adapt", "length", "repeat"]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for (nth, (cell, plans)) in study.cells.iter().zip(plans).enumerate() {
        let Some(plan) = plans.first() else { continue };
        let adapt = if plan.adapt.is_empty() { "–".to_owned() } else { plan.adapt.join(",") };
        table.add_row([
            (nth + 1).to_string(),
            cell.label.clone(),
            plan.target.clone(),
            written(cell.terms.probes.as_deref()),
            written(cell.terms.scans.as_deref()),
            written(cell.terms.loads.as_deref()),
            adapt,
            length(plan.length),
            plans.len().to_string(),
        ]);
    }
    fitted(table, width, &[]).text + "\n"
}

fn written(words: Option<&[SpannedText]>) -> String {
    let all: Vec<&str> = words.unwrap_or_default().iter().map(|one| one.text.as_str()).collect();
    if all.is_empty() { "–".to_owned() } else { all.join(" ") }
}

fn length(length: Length) -> String {
    match length {
        Length::For(time) => time.to_string(),
        Length::Count(count) => format!("{} times", grouped(count)),
    }
}
