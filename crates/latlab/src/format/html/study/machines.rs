//! The machines that a study was measured on: what all have in common, and in what they differ.

use super::super::facts::machine;
use super::super::table::{rows, words};
use crate::format::picture::Source;
use std::fmt::Write as _;

/// More values than so many that differ on one target are not all shown.
const MOST: usize = 3;

/// A table of what is the same everywhere, closed, and one of what is not, with a column for each
/// target.
pub(super) fn tables(sources: &[Source]) -> String {
    let mut targets: Vec<&str> = Vec::new();
    let mut facts: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    for source in sources {
        let target = source.record.plan.target.as_str();
        let column = targets.iter().position(|known| *known == target).unwrap_or_else(|| {
            targets.push(target);
            targets.len() - 1
        });
        for (name, value) in machine(&source.record) {
            let row = facts.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                facts.push((name, Vec::new()));
                facts.len() - 1
            });
            let values = &mut facts[row].1;
            values.resize(values.len().max(column + 1), Vec::new());
            if !values[column].contains(&value) {
                values[column].push(value);
            }
        }
    }
    for (_, values) in &mut facts {
        values.resize(targets.len(), Vec::new());
    }
    let same = |values: &Vec<Vec<String>>| {
        values[0].len() == 1 && values.iter().all(|value| *value == values[0])
    };
    let (alike, differing): (Vec<_>, Vec<_>) =
        facts.into_iter().partition(|(_, values)| same(values));
    let mut text = String::new();
    if !differing.is_empty() {
        let mut columns = vec![words("")];
        columns.extend(targets.iter().map(|target| words(target)));
        let row = |(name, values): (String, Vec<Vec<String>>)| {
            std::iter::once(name).chain(values.iter().map(|values| several(values))).collect()
        };
        let all: Vec<Vec<String>> = differing.into_iter().map(row).collect();
        text += &rows("In what the machines differ", &columns, &all);
    }
    if !alike.is_empty() {
        let row = |(name, values): (String, Vec<Vec<String>>)| vec![name, values[0].concat()];
        let all: Vec<Vec<String>> = alike.into_iter().map(row).collect();
        let table = rows("What is the same on all machines", &[words(""), words("all")], &all);
        let summary = format!("What is the same on all of them ({} facts)", all.len());
        let _ = write!(text, "<details><summary>{summary}</summary>\n{table}</details>\n");
    }
    text
}

/// The values that the cells of one target have.
fn several(values: &[String]) -> String {
    let shown = values.iter().take(MOST).cloned().collect::<Vec<_>>().join(" / ");
    if values.len() > MOST { format!("{shown} / …") } else { shown }
}
