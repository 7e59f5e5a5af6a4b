//! Tables of text that are not wider than a terminal.

use super::width::Width;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table};
use std::fmt::Write as _;

/// Fewest columns of a last column whose text is wrapped.
const LEAST: usize = 20;

/// A table as text.
#[derive(Debug)]
pub struct Fitted {
    /// The content.
    pub text: String,
    /// Indices of the columns that are left out.
    pub left_out: Vec<usize>,
}

/// Formats a table. On a terminal that is too narrow, a last column of text is wrapped, where there
/// is room for it. Otherwise the columns with the indices `optional` are left out, in this order, as
/// far as necessary. If that is not enough, each row becomes a list of all its cells.
pub fn fitted(mut table: Table, width: Width, optional: &[usize]) -> Fitted {
    let mut left_out = Vec::new();
    let mut optional = optional.iter();
    loop {
        if fits(&table, width) || wrap_last(&mut table, width) {
            return Fitted { text: table.trim_fmt(), left_out };
        }
        let Some(index) = optional.next() else {
            return Fitted { text: lists(&table), left_out: Vec::new() };
        };
        if let Some(column) = table.column_mut(*index) {
            column.set_constraint(ColumnConstraint::Hidden);
            left_out.push(*index);
        }
    }
}

fn fits(table: &Table, width: Width) -> bool {
    table.trim_fmt().lines().all(|line| width.fits(line.chars().count()))
}

/// Wraps the last column, if it has text and the others leave room for it.
fn wrap_last(table: &mut Table, width: Width) -> bool {
    let widths = table.column_max_content_widths();
    let shown = table.column_iter().filter(|column| !column.is_hidden());
    let shown: Vec<(usize, u16)> = shown
        .map(|column| (column.index, widths[column.index].saturating_add(column.padding_width())))
        .collect();
    let Some(((last, wide), others)) = shown.split_last() else { return false };
    let room = others.iter().map(|(_, wide)| usize::from(*wide)).sum::<usize>() + LEAST;
    if usize::from(*wide) < LEAST || !width.fits(room) {
        return false;
    }
    for (index, _) in others {
        if let Some(column) = table.column_mut(*index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    if let Some(column) = table.column_mut(*last) {
        column.set_padding((0, 0)).set_cell_alignment(CellAlignment::Left);
    }
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width.at_most(usize::from(u16::MAX))).unwrap_or(u16::MAX));
    true
}

/// Formats each row as its first cell, and a line for each of the others with the column's title.
fn lists(table: &Table) -> String {
    let cells = |row: &Row| row.cell_iter().map(Cell::content).collect::<Vec<_>>();
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
    use crate::text::plain_table;

    fn table() -> Table {
        let mut table = plain_table(&["name", "first", "second", "text"]);
        table.add_row(["cyclic", "100 us", "200 us", "some words about it and more"]);
        table
    }

    fn at(columns: usize, optional: &[usize]) -> (String, Vec<usize>) {
        let fitted = fitted(table(), Width::columns(columns), optional);
        assert!(fitted.text.lines().all(|line| line.chars().count() <= columns), "{fitted:?}");
        (fitted.text, fitted.left_out)
    }

    #[test]
    fn table_wraps_then_leaves_out_columns_then_becomes_a_list() {
        let whole = "name     first  second                          text\n\
                     cyclic  100 us  200 us  some words about it and more";
        assert_eq!(fitted(table(), Width::UNLIMITED, &[1]).text, whole);
        assert_eq!(at(52, &[1]), (whole.to_owned(), vec![]));
        let wrapped = "name     first  second  text\n\
                       cyclic  100 us  200 us  some words about it\n                        and more";
        assert_eq!(at(44, &[1]), (wrapped.to_owned(), vec![]));
        let narrower = "name    second  text\n\
                        cyclic  200 us  some words about it and\n                more";
        assert_eq!(at(43, &[1]), (narrower.to_owned(), vec![1]));
        let list = "cyclic\n  first   100 us\n  second  200 us\n  text    some words about it and \
                    more";
        assert_eq!(fitted(table(), Width::columns(30), &[]).text, list);
    }
}
