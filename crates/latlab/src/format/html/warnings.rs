//! Warnings of the records, at the top of a page.

use crate::format::picture::NamedRecord;
use maud::{Markup, html};

/// A warning, and the records that have it where that must be said.
struct Item<'a> {
    text: &'a str,
    records: String,
}

/// All warnings of each record, in order; of several records, with the record's name.
pub(super) fn by_record(sources: &[NamedRecord]) -> Markup {
    let several = sources.len() > 1;
    let warnings = sources.iter().flat_map(|source| {
        source.record.warnings.iter().map(move |warning| (source.name.as_str(), &warning.text))
    });
    aside(&html! {
        @for (name, text) in warnings {
            li { @if several { (name) ": " } (text) }
        }
    })
}

/// Each warning once, followed by the names of the records that have it.
pub(super) fn merged(sources: &[NamedRecord]) -> Markup {
    let items = distinct(sources);
    aside(&html! {
        @for Item { text, records } in &items {
            li { (text) " " span class="where" { (records) } }
        }
    })
}

fn distinct(sources: &[NamedRecord]) -> Vec<Item<'_>> {
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
        let in_all = names.len() == sources.len();
        Item { text, records: if in_all { "all cells".to_owned() } else { names.join(", ") } }
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
