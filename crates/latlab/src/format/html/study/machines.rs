//! Machines that a study was measured on: their common facts and their differences.

use crate::format::html::facts::machine;
use crate::format::html::table::{table, words};
use crate::format::picture::NamedRecord;
use maud::{Markup, html};

/// Most values of a fact that are shown of one target.
const MOST: usize = 3;

/// Facts about machines, by target.
struct MachineFacts<'a> {
    targets: Vec<&'a str>,
    /// Each fact with the distinct values that the cells of each target have.
    values: Vec<(String, Vec<Vec<String>>)>,
}

impl<'a> MachineFacts<'a> {
    fn of(sources: &'a [NamedRecord]) -> MachineFacts<'a> {
        let mut facts = MachineFacts { targets: Vec::new(), values: Vec::new() };
        for source in sources {
            facts.add(source);
        }
        for (_, values) in &mut facts.values {
            values.resize(facts.targets.len(), Vec::new());
        }
        facts
    }

    fn add(&mut self, source: &'a NamedRecord) {
        let target = source.record.plan.target.as_str();
        let column = self.targets.iter().position(|known| *known == target).unwrap_or_else(|| {
            self.targets.push(target);
            self.targets.len() - 1
        });
        for (name, value) in machine(&source.record) {
            let row = self.values.iter().position(|(known, _)| *known == name);
            let row = row.unwrap_or_else(|| {
                self.values.push((name, Vec::new()));
                self.values.len() - 1
            });
            let values = &mut self.values[row].1;
            values.resize(values.len().max(column + 1), Vec::new());
            if !values[column].contains(&value) {
                values[column].push(value);
            }
        }
    }
}

/// A table of the differences with a column for each target, and one of the common facts, closed
/// at first.
pub(super) fn tables(sources: &[NamedRecord]) -> Markup {
    let MachineFacts { targets, values } = MachineFacts::of(sources);
    let same = |values: &Vec<Vec<String>>| {
        values[0].len() == 1 && values.iter().all(|value| *value == values[0])
    };
    let (common, differing): (Vec<_>, Vec<_>) =
        values.into_iter().partition(|(_, values)| same(values));
    let columns = std::iter::once("").chain(targets).map(words).collect::<Vec<_>>();
    let differing: Vec<Vec<String>> = differing
        .into_iter()
        .map(|(name, values)| {
            std::iter::once(name).chain(values.iter().map(|values| several(values))).collect()
        })
        .collect();
    let common: Vec<Vec<String>> =
        common.into_iter().map(|(name, values)| vec![name, values[0].concat()]).collect();
    html! {
        @if !differing.is_empty() { (table("Differences of the machines", &columns, &differing)) }
        @if !common.is_empty() {
            details {
                summary { "Same on all machines (" (common.len()) " facts)" }
                (table("Same on all machines", &[words(""), words("all")], &common))
            }
        }
    }
}

/// Joins the values that the cells of one target have.
fn several(values: &[String]) -> String {
    let shown = values.iter().take(MOST).cloned().collect::<Vec<_>>().join(" / ");
    if values.len() > MOST { format!("{shown} / …") } else { shown }
}
