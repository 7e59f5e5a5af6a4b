//! Results of a study as a table, with rows and columns as in the paper.

use super::StudyPage;
use crate::study::shown;
use crate::with_micro;
use latlab_core::study::quantity::Quantity;
use maud::{Markup, html};

/// Most columns of a table that is crossed.
const MOST_COLUMNS: usize = 12;

/// A measured value, and the paper's value as printed.
type Value<'a> = (Option<Quantity>, Option<&'a str>);

/// Labels that begin a row.
struct RowHeads<'a> {
    labels: Vec<&'a str>,
    /// The labels of the row above.
    above: Vec<&'a str>,
}

/// The results: one figure over several axes is crossed, otherwise each cell has a row.
pub(super) fn table(about: &StudyPage<'_>) -> Markup {
    let study = about.study;
    let last = study.axes.len().saturating_sub(1);
    let crossed =
        study.figures.len() == 1 && last > 0 && labels_of(about, last).len() <= MOST_COLUMNS;
    html! {
        @if !study.published.is_empty() { p class="note" { (note(about, crossed)) } }
        div class="wide" tabindex="0" role="section" aria-label={ "Results: " (study.redoes) } {
            table class="study" { @if crossed { (cross(about)) } @else { (rows(about)) } }
        }
    }
}

fn note(about: &StudyPage<'_>, crossed: bool) -> String {
    let place = if crossed { "below" } else { "next to" };
    let source = match about.study.source.as_str() {
        "" => String::new(),
        source => format!(" ({source})"),
    };
    format!("In italics, {place} the measured values: the values printed in the paper{source}.")
}

/// The labels on an axis, in order.
fn labels_of<'a>(about: &StudyPage<'a>, axis: usize) -> Vec<&'a str> {
    let mut labels: Vec<&str> = Vec::new();
    for cell in 0..about.study.cells.len() {
        let label = about.study.labels(cell)[axis];
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

/// One figure with the last axis across and the others down.
fn cross(about: &StudyPage<'_>) -> Markup {
    let study = about.study;
    let last = study.axes.len() - 1;
    let columns = labels_of(about, last);
    let (down, across) = study.axes.split_at(last);
    let values: Vec<Value<'_>> = about.findings.rows.iter().map(|row| row.values[0]).collect();
    let labels = |row: usize| study.labels(row * columns.len())[..last].to_vec();
    html! {
        thead {
            tr {
                @for axis in down { th rowspan="2" scope="col" { (axis) } }
                th colspan=(columns.len()) scope="colgroup" class="n" {
                    (study.figures[0].title) " over " (across[0])
                }
            }
            tr { @for label in &columns { th scope="col" class="n" { (label) } } }
        }
        tbody {
            @for (nth, values) in values.chunks(columns.len()).enumerate() {
                tr {
                    (RowHeads::new(labels(nth), nth.checked_sub(1).map(labels)).markup())
                    @for (value, printed) in values {
                        td class="n" {
                            (measured(*value))
                            @if let Some(printed) = printed { br; (published(printed)) }
                        }
                    }
                }
            }
        }
    }
}

/// A row for each cell, a column for each figure and for its published values.
fn rows(about: &StudyPage<'_>) -> Markup {
    let study = about.study;
    let printed: Vec<bool> = (0..study.figures.len())
        .map(|nth| about.findings.rows.iter().any(|row| row.values[nth].1.is_some()))
        .collect();
    html! {
        thead {
            tr {
                @for axis in &study.axes { th scope="col" { (axis) } }
                @for (figure, printed) in study.figures.iter().zip(&printed) {
                    th scope="col" class="n" { (figure.title) }
                    @if *printed { th scope="col" class="n" { "published" } }
                }
            }
        }
        tbody {
            @for (nth, row) in about.findings.rows.iter().enumerate() {
                @let above = nth.checked_sub(1).map(|above| study.labels(above));
                tr {
                    (RowHeads::new(study.labels(nth), above).markup())
                    @for ((value, words), printed) in row.values.iter().zip(&printed) {
                        td class="n" { (measured(*value)) }
                        @if *printed {
                            td class="n" {
                                @if let Some(words) = words { (published(words)) } @else { "–" }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl<'a> RowHeads<'a> {
    fn new(labels: Vec<&'a str>, above: Option<Vec<&'a str>>) -> RowHeads<'a> {
        RowHeads { labels, above: above.unwrap_or_default() }
    }

    fn markup(&self) -> Markup {
        html! {
            @for (axis, label) in self.labels.iter().enumerate() {
                th scope="row" class=[self.class(axis)] { (label) }
            }
        }
    }

    /// A label that repeats the row above is hidden, but stays there for screen readers.
    fn class(&self, axis: usize) -> Option<&'static str> {
        let repeats = self.above.get(..=axis) == Some(&self.labels[..=axis]);
        match axis + 1 < self.labels.len() {
            true if repeats => Some("group again"),
            true => Some("group"),
            false => None,
        }
    }
}

fn measured(value: Option<Quantity>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| with_micro(&shown(value)))
}

fn published(words: &str) -> Markup {
    html! { i class="printed" { (with_micro(words)) } }
}
