//! The table of a study, with rows and columns as papers have them.

use super::super::table::escaped;
use super::About;
use crate::format::study::shown;
use latlab_core::study::quantity::Quantity;
use std::fmt::Write as _;

/// What a cell has of a figure: measured, and as it was printed.
type Value<'a> = (Option<Quantity>, Option<&'a str>);

/// The table: one figure over two axes or more is crossed, all else is a row for each cell.
pub(super) fn table(about: &About<'_>) -> String {
    let study = about.study;
    let last = study.axes.len().saturating_sub(1);
    let crossed = study.figures.len() == 1 && last > 0 && labels_of(about, last).len() <= 12;
    let content = if crossed { cross(about) } else { rows(about) };
    let label = escaped(&format!("The table: {}", study.redoes));
    let mut note = String::new();
    if !study.published.is_empty() {
        let place = if crossed { "Below" } else { "Beside" };
        note = format!("{place} what was measured, in italics, is what the paper printed");
        if !study.source.is_empty() {
            let _ = write!(note, " ({})", study.source);
        }
        note = format!("<p class=\"note\">{}.</p>\n", escaped(&note));
    }
    format!(
        "{note}<div class=\"wide\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{label}\"><table class=\"study\">\n{content}</table></div>\n"
    )
}

/// The labels on an axis, in order.
fn labels_of<'a>(about: &About<'a>, axis: usize) -> Vec<&'a str> {
    let mut labels: Vec<&str> = Vec::new();
    for cell in 0..about.study.cells.len() {
        let label = about.study.labels(cell)[axis];
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// One figure: the last axis goes across, the others down.
fn cross(about: &About<'_>) -> String {
    let study = about.study;
    let last = study.axes.len() - 1;
    let columns = labels_of(about, last);
    let title = escaped(&study.figures[0].title);
    let (down, across) = study.axes.split_at(last);
    let mut text = "<thead><tr>".to_owned();
    for axis in down {
        let _ = write!(text, "<th rowspan=\"2\" scope=\"col\">{}</th>", escaped(axis));
    }
    let _ = writeln!(
        text,
        "<th colspan=\"{}\" scope=\"colgroup\" class=\"n\">{title} over {}</th></tr>\n<tr>",
        columns.len(),
        escaped(&across[0])
    );
    for label in &columns {
        let _ = write!(text, "<th scope=\"col\" class=\"n\">{}</th>", escaped(label));
    }
    text += "</tr></thead>\n<tbody>\n";
    let mut before: Vec<&str> = Vec::new();
    for (nth, row) in about.findings.rows.iter().enumerate() {
        let labels = study.labels(nth);
        if nth % columns.len() == 0 {
            text += if nth > 0 { "</tr>\n<tr>" } else { "<tr>" };
            text += &heads(&labels[..last], &before);
            before = labels[..last].to_vec();
        }
        let (value, printed) = row.values[0];
        let _ = write!(text, "<td class=\"n\">{}", measured(value));
        if let Some(printed) = printed {
            let _ = write!(text, "<br>{}", published(printed));
        }
        text += "</td>";
    }
    text + "</tr>\n</tbody>\n"
}

/// A row for each cell, a column for each figure and for what was printed of it.
fn rows(about: &About<'_>) -> String {
    let study = about.study;
    let printed: Vec<bool> = (0..study.figures.len())
        .map(|nth| about.findings.rows.iter().any(|row| row.values[nth].1.is_some()))
        .collect();
    let mut text = "<thead><tr>".to_owned();
    for axis in &study.axes {
        let _ = write!(text, "<th scope=\"col\">{}</th>", escaped(axis));
    }
    for (figure, printed) in study.figures.iter().zip(&printed) {
        let _ = write!(text, "<th scope=\"col\" class=\"n\">{}</th>", escaped(&figure.title));
        if *printed {
            text += "<th scope=\"col\" class=\"n\">published</th>";
        }
    }
    text += "</tr></thead>\n<tbody>\n";
    let mut before: Vec<&str> = Vec::new();
    for (nth, row) in about.findings.rows.iter().enumerate() {
        let labels = study.labels(nth);
        text += "<tr>";
        text += &heads(&labels, &before);
        before = labels;
        for ((value, words), printed) in row.values.iter().zip(&printed) {
            text += &values((*value, *words), *printed);
        }
        text += "</tr>\n";
    }
    text + "</tbody>\n"
}

fn values((value, words): Value<'_>, printed: bool) -> String {
    let mut text = format!("<td class=\"n\">{}</td>", measured(value));
    if printed {
        let words = words.map_or_else(|| "–".to_owned(), published);
        let _ = write!(text, "<td class=\"n\">{words}</td>");
    }
    text
}

/// The labels of a row. One that is that of the row above is there for those who do not see it.
fn heads(labels: &[&str], before: &[&str]) -> String {
    let mut text = String::new();
    for (axis, label) in labels.iter().enumerate() {
        let again = before.get(..=axis) == Some(&labels[..=axis]);
        let class = match axis + 1 < labels.len() {
            true if again => " class=\"group again\"",
            true => " class=\"group\"",
            false => "",
        };
        let _ = write!(text, "<th scope=\"row\"{class}>{}</th>", escaped(label));
    }
    text
}

fn measured(value: Option<Quantity>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| escaped(&shown(value)).replace(" us", " µs"))
}

fn published(words: &str) -> String {
    format!("<i class=\"printed\">{}</i>", escaped(words).replace(" us", " µs"))
}
