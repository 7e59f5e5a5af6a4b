//! Explanations of late wake-ups: causes as bars, the worst wake-ups as time lines, functions as a
//! flame graph, and their tables.

mod charges;
mod flame;
mod lines;
mod shares;

pub(super) use charges::largest;

use super::Scope;
use super::drawing::{Block, Drawing, GREY, NARROWEST, Row, Shade, percent};
use super::figure::{Level, figure};
use super::table::{number, per_record, words};
use crate::explained::{culprit_and_function, culprit_in, lateness, notes, share};
use crate::picture::COLOURS;
use crate::{grouped, micro};
use latlab_core::record::explained::Explained;
use latlab_core::record::running::{RunningThread, Taken};
use latlab_core::record::{Record, Sample};
use latlab_core::time::Nanos;
use latlab_core::verdict;
use maud::{Markup, html};

/// The figures of all records.
pub(super) fn figures(scope: Scope<'_>) -> Markup {
    let several = scope.sources.len() > 1;
    html! {
        @for (n, source) in scope.sources.iter().enumerate() {
            @if let Some(explained) = &source.record.explained {
                @let suffix = if n > 0 { format!("-{}", n + 1) } else { String::new() };
                @let record = if several { format!(": {}", source.name) } else { String::new() };
                (record_figures(scope.level, [&suffix, &record], explained, &source.record))
            }
        }
    }
}

/// The figures of one record, with a suffix for their ids and one for their titles.
fn record_figures(
    level: Level,
    [id_suffix, title_suffix]: [&str; 2],
    explained: &Explained,
    record: &Record,
) -> Markup {
    let worst = record.worst.iter().filter(|sample| sample.unexplained.is_some());
    let worst: Vec<&Sample> = worst.collect();
    let colours = CauseColours::of(explained, &worst);
    let figure = |id: &str, title: &str, caption: &str, drawing: &Drawing| {
        let (id, title) = (format!("{id}{id_suffix}"), format!("{title}{title_suffix}"));
        figure(level, &id, &title, caption, &drawing.markup(&id))
    };
    let late = explained.late > 0;
    let causes = format!(
        "{}: {}. Sum of all late wake-ups by cause; the parts of a bar are its culprits. Point for \
         names.",
        lateness(explained, micro),
        explained.terms().sum(micro)
    );
    html! {
        @if late {
            (figure("causes", "Latency by cause", &causes, &shares::draw(record, explained, &colours)))
        }
        @for note in notes(record, micro) { p class="note" { (note) } }
        @if !worst.is_empty() {
            (figure("moments", "Worst wake-ups", WORST, &lines::draw(record, &worst, &colours)))
        }
        @if late {
            (figure("flame", "Flame graph", FLAME, &flame::draw(explained, &colours)))
        }
    }
}

const WORST: &str = "From the time the task should have run to the time it ran. Grey: unexplained. Point for causes.";

const FLAME: &str = "Time charged to each function: a frame is as wide as its time and stands on \
                     its caller; below the functions is the culprit, below that the cause.";

/// The tables of all records.
pub(super) fn tables(scope: Scope<'_>) -> Markup {
    let causes = [
        words("cause"),
        words("culprit"),
        number("wake-ups"),
        number("total"),
        number("share"),
        number("worst"),
    ];
    let programs = [words("program"), number("runs"), number("total")];
    let sources = [
        words("thread"),
        number("CPU"),
        words("source"),
        words("culprit"),
        number("times"),
        number("total"),
        number("share"),
        number("longest"),
    ];
    html! {
        (per_record(scope, "Causes of late wake-ups", &causes, |record| {
            record.explained.as_ref().map(|explained| rows(record, explained)).unwrap_or_default()
        }))
        (per_record(scope, "What took the CPU from threads that were to run", &sources, running))
        (per_record(scope, "Tracing overhead", &programs, overhead))
        (per_record(scope, "Limitations", &[words("reason")], |record| {
            let missing = record.explained.iter().flat_map(|explained| &explained.missing);
            missing.map(|sentence| vec![sentence.clone()]).collect()
        }))
    }
}

fn rows(record: &Record, explained: &Explained) -> Vec<Vec<String>> {
    let causes = explained.causes.iter().map(|cause| {
        let (who, function) = ((&*cause.cause, &*cause.culprit), cause.function.as_deref());
        vec![
            cause.cause.clone(),
            culprit_in(record, who, function, cause.worst),
            grouped(cause.count),
            micro(cause.total),
            share(cause.total, explained.total),
            micro(cause.worst),
        ]
    });
    let rest = vec![
        "unexplained".to_owned(),
        String::new(),
        String::new(),
        micro(explained.unexplained),
        share(explained.unexplained, explained.total),
        String::new(),
    ];
    causes.chain((explained.late > 0).then_some(rest)).collect()
}

fn running(record: &Record) -> Vec<Vec<String>> {
    let threads = record.explained.iter().flat_map(|explained| &explained.running);
    let of = |thread: &RunningThread| {
        let row = |taken: &Taken| {
            vec![
                thread.name.clone(),
                taken.cpu.to_string(),
                taken.cause.clone(),
                culprit_and_function(&taken.cause, &taken.culprit, taken.function.as_deref()),
                grouped(taken.count),
                micro(taken.total),
                verdict::percent(taken.total, thread.awake()),
                micro(taken.longest),
            ]
        };
        thread.taken.iter().map(row).collect::<Vec<_>>()
    };
    threads.flat_map(of).collect()
}

fn overhead(record: &Record) -> Vec<Vec<String>> {
    let Some(explained) = &record.explained else { return Vec::new() };
    let programs = explained.cost.iter();
    let programs =
        programs.map(|cost| vec![cost.program.clone(), grouped(cost.runs), micro(cost.ns)]);
    let lost = "lost late wake-ups, samples or events".to_owned();
    let lost = vec![lost, grouped(explained.lost), String::new()];
    programs.chain((explained.lost > 0).then_some(lost)).collect()
}

/// Colours of the causes, the same in all figures of a record.
struct CauseColours<'a>(Vec<&'a str>);

impl<'a> CauseColours<'a> {
    /// The causes in descending order of the time charged to them.
    fn of(explained: &'a Explained, worst: &[&'a Sample]) -> CauseColours<'a> {
        let mut sums: Vec<(&str, Nanos)> = Vec::new();
        for share in &explained.causes {
            match sums.iter_mut().find(|(cause, _)| *cause == share.cause) {
                Some((_, sum)) => *sum = *sum + share.total,
                None => sums.push((&share.cause, share.total)),
            }
        }
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        let mut causes: Vec<&str> = sums.into_iter().map(|(cause, _)| cause).collect();
        for charge in worst.iter().flat_map(|sample| &sample.causes) {
            if !causes.contains(&charge.cause.as_str()) {
                causes.push(&charge.cause);
            }
        }
        CauseColours(causes)
    }

    fn colour(&self, cause: &str) -> &'static str {
        let place = self.0.iter().position(|known| *known == cause);
        place.map_or(GREY, |place| COLOURS[place % COLOURS.len()])
    }
}
