//! Facts about several records or machines side by side: what differs, then what is the same in all.

use super::Scope;
use super::figure::heading;
use super::table::{TableColumn, table, words};
use latlab_core::record::Record;
use maud::{Markup, html};

/// Most values of a fact that are shown in one column.
const MOST_VALUES: usize = 3;

/// Most columns beside each other; of more, each value has a row with the columns that have it.
const MOST_COLUMNS: usize = 5;

/// Common facts that are not worth hiding.
const FEW: usize = 12;

/// Common items of a list that are not worth being separated from the others.
const FEW_ITEMS: usize = 4;

/// A fact: its name, and its distinct values in each column.
type Fact = (String, Vec<Vec<String>>);

/// Facts with a column for each record or machine.
#[derive(Default)]
pub(super) struct SideBySide<'a> {
    sources: usize,
    columns: Vec<&'a str>,
    facts: Vec<Fact>,
}

/// A section with the facts of all records; nothing if there are none.
pub(super) fn section(
    scope: Scope<'_>,
    title: &str,
    facts_of: impl Fn(&Record) -> Vec<(String, String)>,
) -> Markup {
    let mut all = SideBySide::default();
    for (n, source) in scope.sources.iter().enumerate() {
        all.columns.push(&source.name);
        all.add(n, facts_of(&source.record));
    }
    let tables = all.tables(title, "records");
    html! {
        @if !tables.0.is_empty() {
            section {
                (heading(scope.level, None, title))
                (tables)
            }
        }
    }
}

impl<'a> SideBySide<'a> {
    /// Facts of several sources. Sources of the same name share a column.
    pub(super) fn grouped(
        sources: impl Iterator<Item = (&'a str, Vec<(String, String)>)>,
    ) -> SideBySide<'a> {
        let mut all = SideBySide::default();
        for (name, facts) in sources {
            let known = all.columns.iter().position(|column| *column == name);
            let column = known.unwrap_or_else(|| {
                all.columns.push(name);
                all.columns.len() - 1
            });
            all.add(column, facts);
        }
        all
    }

    fn add(&mut self, column: usize, facts: Vec<(String, String)>) {
        self.sources += 1;
        for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
            let row = self.facts.iter().position(|(known, _)| *known == name);
            let row = row.unwrap_or_else(|| {
                self.facts.push((name, Vec::new()));
                self.facts.len() - 1
            });
            let values = &mut self.facts[row].1;
            values.resize(values.len().max(column + 1), Vec::new());
            if !values[column].contains(&value) {
                values[column].push(value);
            }
        }
    }

    /// A table of the differences, and one of the common facts, closed at first if it is long. `what`
    /// names the sources in the plural.
    pub(super) fn tables(mut self, title: &str, what: &str) -> Markup {
        let width = self.columns.len();
        self.facts.iter_mut().for_each(|(_, values)| values.resize(width, Vec::new()));
        let same = |(_, values): &Fact| {
            values[0].len() == 1 && values.iter().all(|value| *value == values[0])
        };
        let facts = self.facts.into_iter().flat_map(without_common_items);
        let (common, differing): (Vec<Fact>, Vec<Fact>) = facts.partition(same);
        let common: Vec<Vec<String>> =
            common.into_iter().map(|(name, values)| vec![name, values[0].concat()]).collect();
        let pair = [words(""), words("")];
        html! {
            @if !differing.is_empty() {
                div class="sides" {
                    (differences(&format!("{title}: differences"), &self.columns, differing))
                }
            }
            @if self.sources == 1 && !common.is_empty() { (table(title, &pair, &common)) }
            @if self.sources > 1 && !common.is_empty() {
                details open[common.len() <= FEW] {
                    summary { "Same in all " (what) " (" (common.len()) ")" }
                    (table(&format!("{title}: same in all {what}"), &pair, &common))
                }
            }
        }
    }
}

/// Divides a fact whose values are lists, such as a kernel command line, into the common items and
/// the different ones.
fn without_common_items((name, values): Fact) -> Vec<Fact> {
    let between = separator(&values);
    let lists: Option<Vec<Vec<&str>>> = values
        .iter()
        .map(|values| match values.as_slice() {
            [one] => Some(one.split(between).filter(|item| !item.is_empty()).collect()),
            _ => None,
        })
        .collect();
    let Some(lists) = lists.filter(|lists| lists.windows(2).any(|pair| pair[0] != pair[1])) else {
        return vec![(name, values)];
    };
    let in_all = |item: &&str| lists.iter().all(|list| list.contains(item));
    let common: Vec<&str> = lists[0].iter().copied().filter(|item| in_all(item)).collect();
    if common.len() < FEW_ITEMS {
        return vec![(name, values)];
    }
    let joined = |items: Vec<&str>| vec![items.join(between)];
    let rest = lists.iter().map(|list| {
        let rest: Vec<&str> = list.iter().copied().filter(|item| !in_all(item)).collect();
        if rest.is_empty() { Vec::new() } else { joined(rest) }
    });
    let all = vec![joined(common); lists.len()];
    vec![(format!("{name}, where different"), rest.collect()), (format!("{name}, in common"), all)]
}

/// What separates the items of a list.
fn separator(values: &[Vec<String>]) -> &'static str {
    if values.iter().flatten().any(|value| value.contains(", ")) { ", " } else { " " }
}

fn differences(label: &str, columns: &[&str], facts: Vec<Fact>) -> Markup {
    if columns.len() > MOST_COLUMNS {
        let rows: Vec<Vec<String>> =
            facts.iter().flat_map(|fact| by_value(fact, columns)).collect();
        return table(label, &[words(""), words("value"), words("of")], &rows);
    }
    let heads: Vec<TableColumn<'_>> =
        std::iter::once("").chain(columns.iter().copied()).map(words).collect();
    let row = |(name, values): Fact| {
        std::iter::once(name).chain(values.iter().map(|values| joined(values))).collect()
    };
    table(label, &heads, &facts.into_iter().map(row).collect::<Vec<Vec<String>>>())
}

/// A row for each value of a fact, with the columns that have it.
fn by_value((name, values): &Fact, columns: &[&str]) -> Vec<Vec<String>> {
    let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
    for (values, column) in values.iter().zip(columns) {
        let value = joined(values);
        match rows.iter_mut().find(|(known, _)| *known == value) {
            Some((_, names)) => names.push(column),
            None => rows.push((value, vec![column])),
        }
    }
    let row = |(value, names): (String, Vec<&str>)| vec![name.clone(), value, names.join(", ")];
    rows.into_iter().map(row).collect()
}

/// Joins the values in one column.
fn joined(values: &[String]) -> String {
    if values.is_empty() {
        return "–".to_owned();
    }
    let shown = values.iter().take(MOST_VALUES).cloned().collect::<Vec<_>>().join(" / ");
    if values.len() > MOST_VALUES { format!("{shown} / …") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::figure::Level;
    use crate::picture::NamedRecord;
    use crate::picture::tests::source;

    fn page(many: usize) -> String {
        let named = |n: usize| {
            let mut source = source(&format!("run-{n}"), 1);
            source.record.plan.seed = if n == 0 { 7 } else { 8 };
            source
        };
        let sources: Vec<NamedRecord> = (0..many).map(named).collect();
        let scope = Scope { sources: &sources, level: Level::Section };
        let facts = |record: &Record| {
            vec![
                ("seed".to_owned(), record.plan.seed.to_string()),
                ("target".to_owned(), record.plan.target.clone()),
            ]
        };
        section(scope, "Parameters", facts).into_string()
    }

    #[test]
    fn common_fact_is_said_once_and_a_difference_for_each_record() {
        assert!(!page(1).contains("Same in all"));
        let two = page(2);
        for text in [">run-0</th>", ">7</td>", ">8</td>", "Same in all records (1)"] {
            assert_eq!(two.matches(text).count(), 1, "{text}: {two}");
        }
        assert_eq!(two.matches("target</td>").count(), 1, "{two}");
    }

    #[test]
    fn lists_are_divided_into_common_and_different_items() {
        let fact = |line: &str| vec![("cmdline".to_owned(), line.to_owned())];
        let lines = [
            ("a", fact("quiet splash ro root=/dev/sda ")),
            ("b", fact("ro quiet splash root=/dev/sda nohz=off")),
        ];
        let page =
            SideBySide::grouped(lines.into_iter()).tables("Machine", "records").into_string();
        for text in [
            "where different</td>",
            ">–</td>",
            ">nohz=off</td>",
            ">quiet splash ro root=/dev/sda</td>",
        ] {
            assert_eq!(page.matches(text).count(), 1, "{text}: {page}");
        }
    }

    #[test]
    fn many_records_do_not_make_many_columns() {
        let page = page(9);
        assert_eq!(page.matches("<th ").count(), 3, "{page}");
        assert!(page.contains(">run-1, run-2, run-3, run-4, run-5, run-6, run-7, run-8</td>"));
    }
}
