//! Tables of the page. Their cells are plain text: markup in them is shown, not obeyed.

use crate::format::picture::Source;
use latlab_core::record::Record;
use std::fmt::Write as _;

/// A column's heading and its class.
#[derive(Clone, Copy)]
pub(super) struct Column<'a>(&'a str, &'static str);

/// A column of words.
pub(super) const fn words(heading: &str) -> Column<'_> {
    Column(heading, "")
}

/// A column of numbers, aligned to the right.
pub(super) const fn number(heading: &str) -> Column<'_> {
    Column(heading, " class=\"n\"")
}

/// A section with the rows of all records; of several, each row begins with its record's name.
pub(super) fn of_each(
    sources: &[Source],
    title: &str,
    columns: &[Column<'_>],
    of: impl Fn(&Record) -> Vec<Vec<String>>,
) -> String {
    let rows = |source: &Source| {
        let mut rows = of(&source.record);
        if sources.len() > 1 {
            for row in &mut rows {
                row.insert(0, source.name.clone());
            }
        }
        rows
    };
    let mut all = columns.to_vec();
    if sources.len() > 1 {
        all.insert(0, words("record"));
    }
    let rows: Vec<Vec<String>> = sources.iter().flat_map(rows).collect();
    section(title, "", &all, &rows)
}

/// A section with a row for each fact and a column for each record.
pub(super) fn side_by_side(
    sources: &[Source],
    title: &str,
    of: impl Fn(&Record) -> Vec<(String, String)>,
) -> String {
    let mut columns = vec![words("")];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (n, source) in sources.iter().enumerate() {
        columns.push(words(&source.name));
        for (what, value) in of(&source.record) {
            let known = rows.iter().position(|row| row[0] == what);
            let row = known.unwrap_or_else(|| {
                rows.push(vec![String::new(); sources.len() + 1]);
                rows.len() - 1
            });
            rows[row][0] = what;
            rows[row][n + 1] = value;
        }
    }
    rows.retain(|row| row[1..].iter().any(|value| !value.is_empty()));
    section(title, "", &columns, &rows)
}

/// A section with a table, or nothing where there are no rows.
pub(super) fn section(
    title: &str,
    note: &str,
    columns: &[Column<'_>],
    rows: &[Vec<String>],
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("<section>\n<h2>{}</h2>\n", escaped(title));
    if !note.is_empty() {
        let _ = writeln!(text, "<p class=\"note\">{}</p>", escaped(note));
    }
    text + &self::rows(title, columns, rows) + "</section>\n"
}

/// A table, which those can scroll who have a keyboard only, and hear what it is.
pub(super) fn rows(label: &str, columns: &[Column<'_>], rows: &[Vec<String>]) -> String {
    let label = escaped(label);
    let mut text = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\n<thead><tr>"
    );
    for Column(heading, class) in columns {
        let _ = write!(text, "<th scope=\"col\"{class}>{}</th>", escaped(heading));
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in rows {
        text += "<tr>";
        for (cell, Column(_, class)) in row.iter().zip(columns) {
            let _ = write!(text, "<td{class}>{}</td>", escaped(cell));
        }
        text += "</tr>\n";
    }
    text + "</tbody>\n</table></div>\n"
}

/// Text as it stands in HTML, in an attribute too.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            _ => safe.push(c),
        }
    }
    safe
}
