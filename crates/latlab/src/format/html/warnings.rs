//! What records warn of, before any number.

use super::table::escaped;
use crate::format::picture::Source;
use std::fmt::Write as _;

/// The warnings of each record, in order.
pub(super) fn of_each(sources: &[Source]) -> String {
    let mut items = String::new();
    for source in sources {
        for warning in &source.record.warnings {
            let place =
                if sources.len() > 1 { format!("{}: ", source.name) } else { String::new() };
            let _ = writeln!(items, "<li>{}{}</li>", escaped(&place), escaped(&warning.text));
        }
    }
    framed(&items)
}

/// Each warning once, and behind it which records have it.
pub(super) fn once(sources: &[Source]) -> String {
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
    let mut items = String::new();
    for (text, names) in all {
        let places = match names.len() {
            all if all == sources.len() => "all cells".to_owned(),
            _ => names.join(", "),
        };
        let _ = writeln!(
            items,
            "<li>{} <span class=\"where\">{}</span></li>",
            escaped(text),
            escaped(&places)
        );
    }
    framed(&items)
}

fn framed(items: &str) -> String {
    if items.is_empty() {
        return String::new();
    }
    format!(
        "<aside class=\"warnings\" role=\"note\" aria-label=\"Warnings\">\n\
         <h2>Before you believe it</h2>\n<ul>\n{items}</ul>\n</aside>\n"
    )
}
