//! Why the worst of a study was late, where that was found out, and else how to find out.

use super::super::table::escaped;
use super::super::{explained, paths};
use super::About;
use crate::format::scan::written;
use crate::format::{micro, printable};
use latlab_core::plan::Length;
use latlab_core::study::Cell;
use latlab_core::study::figure::Of;

/// The longest latency of the table, with what made it late.
pub(super) fn section(about: &About<'_>) -> String {
    let Some(worst) = about.study.worst(about.findings) else { return String::new() };
    let Of::Series { probe, .. } = &worst.figure.of else { return String::new() };
    let cell = &about.study.cells[worst.cell];
    let longest = format!(
        "<p class=\"prose\">The longest of the table is {} in the cell <b>{}</b> ({}).",
        micro(worst.latency),
        escaped(&cell.label),
        escaped(&printable(&worst.figure.title)),
    );
    if let Some(source) = about.why {
        let source = std::slice::from_ref(source);
        return format!("{longest} The cell was measured once more to find out why:</p>\n")
            + &explained::pictures(source)
            + &paths::pictures(source)
            + &explained::tables(source);
    }
    format!(
        "{longest} Its record does not say why: studies measure without looking. This looks, as does \
         <code>latlab study --explain</code>:</p>\n\
         <pre class=\"command\"><code>{}</code></pre>\n",
        escaped(&command(cell, probe)),
    )
}

/// What measures a cell again and explains it.
fn command(cell: &Cell, probe: &str) -> String {
    let terms = &cell.terms;
    let texts = |words: &Option<Vec<latlab_core::study::Words>>| -> Vec<String> {
        words.iter().flatten().map(|words| words.text.clone()).collect()
    };
    let mut command = vec!["latlab explain".to_owned()];
    command.extend(cell.probes_with(probe).into_iter().map(|words| words.text.clone()));
    command.extend(texts(&terms.loads).into_iter().map(|load| format!("--load {load}")));
    command.extend(terms.on.as_ref().map(|on| format!("--on {}", on.text)));
    command.extend(terms.length.map(|length| match length {
        Length::For(time) => format!("--for {}", written(time)),
        Length::Count(count) => format!("--count {count}"),
    }));
    command.extend(terms.warm_up.map(|time| format!("--warm-up {}", written(time))));
    command.extend(terms.seed.map(|seed| format!("--seed {seed}")));
    command.extend(texts(&terms.settings).into_iter().map(|setting| format!("--set {setting}")));
    let adapt = terms.adapt.iter().flatten().map(|mechanisms| mechanisms.text.as_str());
    command.extend(adapt.map(|mechanisms| match mechanisms {
        "" => "--adapt".to_owned(),
        some => format!("--adapt={some}"),
    }));
    command.join(" ")
}
