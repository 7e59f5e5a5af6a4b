//! Function traces of the worst samples, recorded by the laboratory's microscope: calls with their
//! durations, interrupts-off and preemption-off sections, and the most expensive functions.

mod calls;
mod functions;

use super::Scope;
use super::drawing::GREY;
use super::figure::{Level, figure};
use crate::picture::COLOURS;
use crate::{grouped, micro, printable};
use latlab_core::path::{Path, Spent};
use latlab_core::record::{Record, Sample};
use latlab_core::time::Nanos;
use maud::{Markup, html};

/// Number of functions that have a colour of their own and a bar.
const BUSIEST: usize = 7;

/// The figures of all records.
pub(super) fn figures(scope: Scope<'_>) -> Markup {
    let several = scope.sources.len() > 1;
    html! {
        @for (n, source) in scope.sources.iter().enumerate() {
            @let id = if n > 0 { format!("paths-{}", n + 1) } else { "paths".to_owned() };
            @let record = if several { format!(": {}", source.name) } else { String::new() };
            (record_figure(scope.level, &id, &record, &source.record))
        }
    }
}

fn record_figure(level: Level, id: &str, title_suffix: &str, record: &Record) -> Markup {
    let known = record.worst.iter().filter_map(|sample| Some((sample, sample.path.as_ref()?)));
    let known: Vec<(&Sample, &Path)> = known.collect();
    if known.is_empty() {
        return Markup::default();
    }
    let title = format!("Function trace of the worst wake-ups{title_suffix}");
    let caption = "Every instruction from the time the task should have run to the time it ran. A \
                   function is as wide as the time until it returned and is drawn below its \
                   caller; the most expensive functions are coloured. Point for name and time.";
    let content = html! {
        @for (n, samples) in group_by_path(&known).into_iter().enumerate() {
            (details(&format!("{id}-path-{}", n + 1), samples, n == 0))
        }
    };
    figure(level, id, &title, caption, &content)
}

/// Groups neighbours that took the same path, which is drawn once.
fn group_by_path<'a, 'b>(known: &'b [(&'a Sample, &'a Path)]) -> Vec<&'b [(&'a Sample, &'a Path)]> {
    known.chunk_by(|a, b| a.1.functions == b.1.functions).collect()
}

/// Samples that took the same path. The worst of them is drawn.
fn details(id: &str, samples: &[(&Sample, &Path)], open: bool) -> Markup {
    let [(sample, path), others @ ..] = samples else { return Markup::default() };
    let colours = FunctionColours::of(path);
    let title = title(sample, others.len());
    let functions = functions::draw(path, sample.latency, &colours);
    html! {
        details open[open] {
            summary { (printable(&title)) }
            p class="note" { (composition(path)) }
            (calls::draw(path, &colours).markup(id))
            p class="note" { "Most expensive functions, without their callees:" }
            (functions.markup(&format!("{id}-most")))
            (steps(path))
        }
    }
}

fn title(sample: &Sample, others: usize) -> String {
    let (latency, probe, at) = (micro(sample.latency), &sample.probe, micro(sample.at));
    let more =
        if others > 0 { format!(", and {others} more on the same path") } else { String::new() };
    format!("{latency} late: {probe} on CPU {}, {at} after the start{more}", sample.cpu)
}

/// Returns the components of the latency as a sentence.
fn composition(path: &Path) -> String {
    let before = path.idle_before();
    let parts = [
        (path.unseen, "before the trace"),
        (before, "idle, not drawn"),
        (Nanos(path.instructions()), "of instructions"),
        (path.idle - before, "idle in between"),
    ];
    let parts = parts.iter().filter(|(time, _)| *time > Nanos(0));
    let parts: Vec<String> = parts.map(|(time, name)| format!("{} {name}", micro(*time))).collect();
    format!("{}.", parts.join(", then "))
}

/// All steps as text, which can be searched and needs no pointer.
fn steps(path: &Path) -> Markup {
    let count = grouped(path.steps.len() as u64);
    let lines = path.steps.iter().map(|step| {
        let depth = usize::try_from(step.depth).unwrap_or(usize::MAX).min(64);
        let (indent, name) = (" ".repeat(depth), printable(&step.function));
        format!("{:>9}  {indent}{name}\n", grouped(step.instructions))
    });
    html! {
        details {
            summary { (count) " steps, in instructions" }
            pre class="steps" tabindex="0" aria-label="Steps of the path" {
                (lines.collect::<String>())
            }
        }
    }
}

/// Colours of the most expensive functions.
struct FunctionColours<'a>(&'a [Spent]);

impl<'a> FunctionColours<'a> {
    fn of(path: &'a Path) -> FunctionColours<'a> {
        FunctionColours(&path.functions[..path.functions.len().min(BUSIEST)])
    }

    fn colour(&self, function: &str) -> &'static str {
        let place = self.0.iter().position(|spent| spent.function == function);
        place.map_or(GREY, |place| COLOURS[place])
    }
}
