//! Explanation of the worst latency of a study, or the command that explains it.

use super::StudyPage;
use crate::command::quoted;
use crate::html::figure::Level;
use crate::html::{Scope, explained, paths};
use crate::part::written;
use crate::{micro, printable};
use latlab_core::plan::Length;
use latlab_core::study::Cell;
use latlab_core::study::figure::FigureSource;
use maud::{Markup, html};

/// The worst latency of the results with its explanation; nothing if no latency was measured.
pub(super) fn section(about: &StudyPage<'_>) -> Markup {
    let Some(worst) = about.study.worst(about.findings) else { return Markup::default() };
    let FigureSource::Series { probe, .. } = &worst.figure.of else { return Markup::default() };
    let cell = &about.study.cells[worst.cell];
    let repetitions = about.records[worst.cell].as_deref().unwrap_or_default();
    let repetition = worst.figure.worst_repetition(repetitions);
    let seed = repetition.map_or(0, |nth| repetitions[nth].plan.seed);
    html! {
        p class="prose" {
            "Worst latency of the results: " (micro(worst.latency)) " in the cell "
            b { (cell.label) } " (" (printable(&worst.figure.title)) "). "
            @if about.why.is_some() {
                "The cell was measured once more with tracing:"
            } @else {
                "Its record has no explanation, because studies measure without tracing. To \
                 explain it, use " code { "latlab study --explain" } " or:"
            }
        }
        @match about.why {
            Some(source) => (explanation(Scope {
                sources: std::slice::from_ref(source),
                level: Level::Subsection,
            })),
            None => pre class="command" { code { (command(cell, probe, seed)) } },
        }
    }
}

fn explanation(scope: Scope<'_>) -> Markup {
    html! {
        (explained::figures(scope))
        (paths::figures(scope))
        (explained::tables(scope))
    }
}

/// Returns the command that measures the repetition of a cell with this seed again and explains it.
fn command(cell: &Cell, probe: &str, seed: u64) -> String {
    let terms = &cell.terms;
    let texts = |words: &Option<Vec<latlab_core::study::SpannedText>>| -> Vec<String> {
        words.iter().flatten().map(|words| words.text.clone()).collect()
    };
    let mut command = vec!["latlab explain".to_owned()];
    command.extend(cell.probes_with(probe).into_iter().map(|words| quoted(&words.text)));
    command.extend(texts(&terms.loads).iter().map(|load| format!("--load {}", quoted(load))));
    command.extend(terms.on.as_ref().map(|on| format!("--on {}", quoted(&on.text))));
    command.extend(terms.length.map(|length| match length {
        Length::For(time) => format!("--for {}", written(time)),
        Length::Count(count) => format!("--count {count}"),
    }));
    command.extend(terms.warm_up.map(|time| format!("--warm-up {}", written(time))));
    command.extend((seed != 0).then(|| format!("--seed {seed}")));
    command.extend(texts(&terms.settings).iter().map(|set| format!("--set {}", quoted(set))));
    let adapt = terms.adapt.iter().flatten().map(|mechanisms| mechanisms.text.as_str());
    command.extend(adapt.map(|mechanisms| match mechanisms {
        "" => "--adapt".to_owned(),
        some => format!("--adapt={}", quoted(some)),
    }));
    command.join(" ")
}
