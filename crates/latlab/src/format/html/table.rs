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

/// A section with a row for each fact and a column for each record.
pub(super) fn side_by_side(
    scope: Scope<'_>,
    title: &str,
    facts_of: impl Fn(&Record) -> Vec<(String, String)>,
) -> Markup {
    let mut columns = vec![words("")];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (n, source) in scope.sources.iter().enumerate() {
        columns.push(words(&source.name));
        for (name, value) in facts_of(&source.record) {
            let known = rows.iter().position(|row| row[0] == name);
            let row = known.unwrap_or_else(|| {
                rows.push(vec![String::new(); scope.sources.len() + 1]);
                rows.len() - 1
            });
            rows[row][0] = name;
            rows[row][n + 1] = value;
        }
    }
    rows.retain(|row| row[1..].iter().any(|value| !value.is_empty()));
    section(scope.level, title, "", &columns, &rows)
}

/// A section with a table; nothing if there are no rows.
pub(super) fn section(
    level: Level,
    title: &str,
    note: &str,
    columns: &[TableColumn<'_>],
    rows: &[Vec<String>],
) -> Markup {
    html! {
        @if !rows.is_empty() {
            section {
                (heading(level, None, title))
                @if !note.is_empty() { p class="note" { (note) } }
                (table(title, columns, rows))
            }
        }
    }
}

/// A table that can be scrolled with the keyboard. `label` is for screen readers.
pub(super) fn table(label: &str, columns: &[TableColumn<'_>], rows: &[Vec<String>]) -> Markup {
    html! {
        div class="wide" tabindex="0" role="section" aria-label=(label) {
            table {
                thead {
                    tr {
                        @for column in columns {
                            th scope="col" class=[column.class()] { (column.heading) }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (cell, column) in row.iter().zip(columns) {
                                td class=[column.class()] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}
