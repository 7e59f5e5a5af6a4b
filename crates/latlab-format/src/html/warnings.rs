//! Warnings of the records, at the top of a page.

use crate::picture::NamedRecord;
use maud::{Markup, html};

/// A warning, and the records that have it where that must be said.
struct Item<'a> {
    text: &'a str,
    records: String,
}

/// Each warning once, followed by the names of the records that have it if there are several. `what`
/// names the records in the plural.
pub(super) fn merged(sources: &[NamedRecord], what: &str) -> Markup {
    let items = distinct(sources, what);
    aside(&html! {
        @for Item { text, records } in &items {
            li { (text) " " span class="where" { (records) } }
        }
    })
}

fn distinct<'a>(sources: &'a [NamedRecord], what: &str) -> Vec<Item<'a>> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for source in sources {
        for warning in &source.record.warnings {
            match all.iter_mut().find(|(text, _)| *text == warning.text) {
                Some((_, names)) if names.contains(&source.name.as_str()) => {}
                Some((_, names)) => names.push(&source.name),
                None => all.push((&warning.text, vec![&source.name])),
            }
        }
    }
    let item = |(text, names): (_, Vec<&str>)| {
        let records = match names.len() {
            _ if sources.len() == 1 => String::new(),
            all if all == sources.len() => format!("all {what}"),
            _ => names.join(", "),
        };
        Item { text, records }
    };
    all.into_iter().map(item).collect()
}

fn aside(items: &Markup) -> Markup {
    html! {
        @if !items.0.is_empty() {
            aside class="warnings" role="note" aria-label="Warnings" {
                h2 { "Caveats" }
                ul { (items) }
            }
        }
    }
}
