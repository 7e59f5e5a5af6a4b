//! Why the worst of a study was late, where its record says so, and else how to find out.

use super::super::table::escaped;
use super::super::{explained, paths};
use super::About;
use crate::format::scan::written;
use crate::format::{micro, printable};
use latlab_core::plan::Length;
use latlab_core::study::Cell;
use latlab_core::study::figure::{Figure, Of, Take};
use latlab_core::time::Nanos;

/// The longest latency of the table, with what made it late.
pub(super) fn section(about: &About<'_>) -> String {
    let explained = about.sources.iter().filter(|source| source.record.explained.is_some());
    let longest = |source: &&crate::format::picture::Source| {
        source.record.worst.iter().map(|sample| sample.latency).max()
    };
    if let Some(source) = explained.max_by_key(longest) {
        let source = std::slice::from_ref(source);
        let intro = format!(
            "<p class=\"prose\">Of the records that are explained, that of <b>{}</b> holds the \
             longest latency.</p>\n",
            escaped(&source[0].name)
        );
        return intro
            + &explained::pictures(source)
            + &paths::pictures(source)
            + &explained::tables(source);
    }
    let Some((cell, figure, value)) = worst(about) else { return String::new() };
    let Of::Series { probe, .. } = &figure.of else { return String::new() };
    let command = command(cell, probe);
    format!(
        "<p class=\"prose\">The longest of the table is {} in the cell <b>{}</b> ({}). Its record \
         does not say why: studies measure without looking. This looks:</p>\n\
         <pre class=\"command\"><code>{}</code></pre>\n",
        micro(value),
        escaped(&cell.label),
        escaped(&printable(&figure.title)),
        escaped(&command),
    )
}

/// The longest of all latencies in the table, but for those of scans.
fn worst<'a>(about: &About<'a>) -> Option<(&'a Cell, &'a Figure, Nanos)> {
    let study = about.study;
    let mut worst: Option<(&Cell, &Figure, f64)> = None;
    for (cell, row) in study.cells.iter().zip(&about.findings.rows) {
        for (figure, (value, _)) in study.figures.iter().zip(&row.values) {
            let latency =
                matches!(&figure.of, Of::Series { probe, .. } if !probe.starts_with("scan."));
            let Some(value) = value.filter(|_| latency && figure.take == Take::Max) else {
                continue;
            };
            if worst.is_none_or(|(_, _, longest)| value.value > longest) {
                worst = Some((cell, figure, value.value));
            }
        }
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a time")]
    worst.map(|(cell, figure, value)| (cell, figure, Nanos(value.round() as u64)))
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
