//! Tables of a page.

use super::Scope;
use super::figure::{Level, heading};
use latlab_core::record::Record;
use maud::{Markup, html};

/// Heading and alignment of a table's column.
#[derive(Clone, Copy)]
pub(super) struct TableColumn<'a> {
    heading: &'a str,
    is_number: bool,
}

/// A column of words.
pub(super) const fn words(heading: &str) -> TableColumn<'_> {
    TableColumn { heading, is_number: false }
}

/// A column of numbers, aligned to the right.
pub(super) const fn number(heading: &str) -> TableColumn<'_> {
    TableColumn { heading, is_number: true }
}

impl TableColumn<'_> {
    fn class(self) -> Option<&'static str> {
        self.is_number.then_some("n")
    }
}

/// A section with a table of the rows of all records. If there are several records, the first
/// column names them.
pub(super) fn per_record(
    scope: Scope<'_>,
    title: &str,
    columns: &[TableColumn<'_>],
    rows_of: impl Fn(&Record) -> Vec<Vec<String>>,
) -> Markup {
    let several = scope.sources.len() > 1;
    let name = several.then(|| words("record"));
    let columns: Vec<TableColumn<'_>> = name.into_iter().chain(columns.iter().copied()).collect();
    let rows = scope.sources.iter().flat_map(|source| {
        let rows = rows_of(&source.record).into_iter();
        rows.map(|row| several.then(|| source.name.clone()).into_iter().chain(row).collect())
    });
    section(scope.level, title, "", &columns, &rows.collect::<Vec<Vec<String>>>())
}

/// A section with a table; nothing if there are no rows. Columns without a value are left out.
pub(super) fn section(
    level: Level,
    title: &str,
    note: &str,
    columns: &[TableColumn<'_>],
    rows: &[Vec<String>],
) -> Markup {
    let filled: Vec<bool> =
        (0..columns.len()).map(|n| rows.iter().any(|row| !row[n].is_empty())).collect();
    let columns = columns.iter().zip(&filled).filter(|(_, filled)| **filled);
    let columns: Vec<TableColumn<'_>> = columns.map(|(column, _)| *column).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let cells = row.iter().zip(&filled).filter(|(_, filled)| **filled);
            cells.map(|(cell, _)| cell.clone()).collect()
        })
        .collect();
    html! {
        @if !rows.is_empty() {
            section {
                (heading(level, None, title))
                @if !note.is_empty() { p class="note" { (note) } }
                (table(title, &columns, &rows))
            }
        }
    }
}

/// A table that can be scrolled with the keyboard. `label` is for screen readers.
///
/// On a narrow screen, the style sheet puts the cells of a row below each other if there are words
/// in them; a table of numbers is scrolled beside its first column.
pub(super) fn table(label: &str, columns: &[TableColumn<'_>], rows: &[Vec<String>]) -> Markup {
    let stacks = columns.iter().skip(1).any(|column| !column.is_number);
    let headed = columns.iter().any(|column| !column.heading.is_empty());
    html! {
        div class="wide" tabindex="0" role="section" aria-label=(label) {
            table class=(if stacks { "stacked" } else { "numbers" }) {
                @if headed {
                    thead {
                        tr {
                            @for column in columns {
                                th scope="col" class=[column.class()] { (column.heading) }
                            }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (n, (cell, column)) in row.iter().zip(columns).enumerate() {
                                @let label = (stacks && n > 0).then_some(column.heading);
                                td class=[column.class()] data-label=[label] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}
