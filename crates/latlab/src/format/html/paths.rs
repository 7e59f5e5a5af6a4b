//! The paths of the worst samples, as the laboratory's microscope saw them: who called whom and for
//! how long, what was held off meanwhile, and which functions took most.

mod calls;
mod functions;

use super::drawing::{GREY, figure};
use super::table::escaped;
use crate::format::picture::{COLOURS, Source};
use crate::format::{grouped, micro, printable};
use latlab_core::path::{Path, Spent};
use latlab_core::record::{Record, Sample};
use latlab_core::time::Nanos;
use std::fmt::Write as _;

/// So many functions have a colour of their own, and a bar.
const BUSIEST: usize = 7;

/// The paths of all records.
pub(super) fn pictures(sources: &[Source]) -> String {
    let several = sources.len() > 1;
    let each = sources.iter().enumerate().map(|(n, source)| {
        let id = if n > 0 { format!("paths-{}", n + 1) } else { "paths".to_owned() };
        let of = if several { format!(": {}", source.name) } else { String::new() };
        of_record(&id, &of, &source.record)
    });
    each.collect()
}

fn of_record(id: &str, of: &str, record: &Record) -> String {
    let known = record.worst.iter().filter_map(|sample| Some((sample, sample.path.as_ref()?)));
    let known: Vec<(&Sample, &Path)> = known.collect();
    if known.is_empty() {
        return String::new();
    }
    let about = "Every instruction from when the task should have run to when it ran. A function is \
                 as wide as the time until it returned, and stands below the one that called it; \
                 those that took most have a colour. Pointing shows a name and how long.";
    // The same path again shows nothing new.
    let alike = |a: &(&Sample, &Path), b: &(&Sample, &Path)| a.1.functions == b.1.functions;
    let alike: Vec<&[(&Sample, &Path)]> = known.chunk_by(alike).collect();
    let each = alike.iter().enumerate().map(|(n, samples)| {
        let id = format!("{id}-path-{}", n + 1);
        several(&id, samples, n == 0)
    });
    let content: String = each.collect();
    figure(id, &format!("What ran before the worst wake-ups{of}"), about, &content)
}

/// Samples of which all took the same path; the worst of them is drawn.
fn several(id: &str, samples: &[(&Sample, &Path)], open: bool) -> String {
    let [(sample, path), others @ ..] = samples else { return String::new() };
    let colours = Colours::of(path);
    let title = title(sample, others.len());
    let open = if open { " open" } else { "" };
    let summary = escaped(&printable(&title));
    let mut text = format!("<details{open}>\n<summary>{summary}</summary>\n");
    let _ = writeln!(text, "<p class=\"note\">{}</p>", escaped(&parts(path)));
    text += &calls::draw(path, &colours).svg(id, &title);
    let took = format!("What took most of it: {title}");
    text += &functions::draw(path, sample.latency, &colours).svg(&format!("{id}-most"), &took);
    text += &steps(path);
    text + "</details>\n"
}

fn title(sample: &Sample, others: usize) -> String {
    let (latency, probe, at) = (micro(sample.latency), &sample.probe, micro(sample.at));
    let more = if others > 0 { format!(", {others} more alike") } else { String::new() };
    format!("{latency} late: {probe} on CPU {}, {at} after the start{more}", sample.cpu)
}

/// What the latency is made of.
fn parts(path: &Path) -> String {
    let before = path.idle_before();
    let parts = [
        (path.unseen, "earlier, and not seen"),
        (before, "idle, before what is drawn"),
        (Nanos(path.instructions()), "of instructions"),
        (path.idle - before, "idle in between"),
    ];
    let parts = parts.iter().filter(|(time, _)| *time > Nanos(0));
    let parts: Vec<String> = parts.map(|(time, what)| format!("{} {what}", micro(*time))).collect();
    format!("{}.", parts.join(", then "))
}

/// All steps as text, for who can't point at a picture, and for searching.
fn steps(path: &Path) -> String {
    let mut lines = String::new();
    for step in &path.steps {
        let depth = usize::try_from(step.depth).unwrap_or(usize::MAX).min(64);
        let (indent, name) = (" ".repeat(depth), printable(&step.function));
        let _ = writeln!(lines, "{:>9}  {indent}{name}", grouped(step.instructions));
    }
    let (count, lines) = (grouped(path.steps.len() as u64), escaped(&lines));
    format!(
        "<details>\n<summary>Its {count} steps, in instructions</summary>\n\
         <pre class=\"steps\" tabindex=\"0\" aria-label=\"The steps of the path\">{lines}</pre>\n\
         </details>\n"
    )
}

/// The colours of the functions that took most.
struct Colours<'a>(&'a [Spent]);

impl<'a> Colours<'a> {
    fn of(path: &'a Path) -> Colours<'a> {
        Colours(&path.functions[..path.functions.len().min(BUSIEST)])
    }

    fn colour(&self, function: &str) -> &'static str {
        let place = self.0.iter().position(|spent| spent.function == function);
        place.map_or(GREY, |place| COLOURS[place])
    }
}
