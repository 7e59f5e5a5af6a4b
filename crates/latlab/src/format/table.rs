//! Tables of text that are not wider than a terminal.

use super::width::Width;
use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table};
use std::fmt::Write as _;

/// Fewest columns of a last column whose text is wrapped.
const LEAST: usize = 16;

/// A table as text.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) text: String,
    /// Indices of the columns that are left out.
    pub(crate) left_out: Vec<usize>,
}

/// Formats a table. On a terminal that is too narrow, the columns with the indices `optional` are
/// left out, in this order, as far as necessary; then the last column is wrapped; and if that is not
/// enough, each row becomes a list of all its cells.
pub(crate) fn fitted(mut table: Table, width: Width, optional: &[usize]) -> Fitted {
    let mut left_out = Vec::new();
    for index in optional {
        if fits(&table, width) {
            break;
        }
        if let Some(column) = table.column_mut(*index) {
            column.set_constraint(ColumnConstraint::Hidden);
            left_out.push(*index);
        }
    }
    if fits(&table, width) {
        return Fitted { text: table.trim_fmt(), left_out };
    }
    match wrap_last(&mut table, width) {
        Some(text) => Fitted { text, left_out },
        None => Fitted { text: lists(&table), left_out: Vec::new() },
    }
}

fn fits(table: &Table, width: Width) -> bool {
    table.trim_fmt().lines().all(|line| width.fits(line.chars().count()))
}

/// Wraps the last column, if the others leave room for it.
fn wrap_last(table: &mut Table, width: Width) -> Option<String> {
    let shown = |table: &Table| {
        let widths = table.column_max_content_widths();
        let shown = table.column_iter().filter(|column| !column.is_hidden());
        let shown = shown.map(|column| usize::from(widths[column.index] + column.padding_width()));
        shown.collect::<Vec<_>>()
    };
    let others: usize = shown(table).split_last()?.1.iter().sum();
    let columns = width.at_most(usize::from(u16::MAX));
    if others + LEAST > columns {
        return None;
    }
    let last = table.column_iter().filter(|column| !column.is_hidden()).last()?.index;
    for column in table.column_iter_mut().filter(|one| one.index != last && !one.is_hidden()) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    Some(table.trim_fmt())
}

/// Formats each row as its first cell, and a line for each of the others with the column's title.
fn lists(table: &Table) -> String {
    let cells = |row: &Row| row.cell_iter().map(|cell| cell.content()).collect::<Vec<_>>();
    let titles = table.header().map(cells).unwrap_or_default();
    let longest = titles.iter().skip(1).map(|title| title.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in table.row_iter().map(cells) {
        let _ = writeln!(text, "{}", row.first().map_or("", |first| first.trim_end()));
        let others = titles.iter().zip(&row).skip(1).filter(|(_, cell)| !cell.is_empty());
        for (title, cell) in others {
            let _ = writeln!(text, "  {}", format!("{title:<longest$}  {cell}").trim_end());
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text::plain_table;

    fn table() -> Table {
        let mut table = plain_table(&["name", "first", "second", "text"]);
        table.add_row(["cyclic", "100 us", "200 us", "some words about it"]);
        table
    }

    fn at(columns: usize, optional: &[usize]) -> (String, Vec<usize>) {
        let fitted = fitted(table(), Width::columns(columns), optional);
        assert!(fitted.text.lines().all(|line| line.chars().count() <= columns), "{fitted:?}");
        (fitted.text, fitted.left_out)
    }

    #[test]
    fn table_leaves_out_columns_then_wraps_then_becomes_a_list() {
        let whole = "name     first  second                 text\n\
                     cyclic  100 us  200 us  some words about it";
        assert_eq!(fitted(table(), Width::UNLIMITED, &[1]).text, whole);
        assert_eq!(at(43, &[1]), (whole.to_owned(), vec![]));
        let without = "name    second                 text\ncyclic  200 us  some words about it";
        assert_eq!(at(42, &[1, 2]), (without.to_owned(), vec![1]));
        let (wrapped, left_out) = at(40, &[]);
        assert!(wrapped.lines().count() == 3 && left_out.is_empty(), "{wrapped}");
        let list = "cyclic\n  first   100 us\n  second  200 us\n  text    some words about it";
        assert_eq!(at(30, &[]), (list.to_owned(), vec![]));
    }
}
