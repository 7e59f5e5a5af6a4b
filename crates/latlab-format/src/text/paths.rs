//! Function traces of the worst samples as text: the most expensive functions, and the longest
//! interrupts-off and preemption-off sections.

use crate::printable;
use latlab_core::path::{DisabledSection, Off, Path};
use latlab_core::record::{Record, Sample};
use latlab_core::time::Nanos;
use std::fmt::Write as _;

/// Most functions, and most sections of each kind, that are shown of a path.
const FUNCTIONS: usize = 6;
const SECTIONS: usize = 2;

/// Different paths that are shown unless all are asked for.
const PATHS: usize = 3;

/// Returns the paths of the worst samples, as far as they are known: all of them if it is `verbose`.
pub(super) fn summary(record: &Record, verbose: bool) -> String {
    let known = record.worst.iter().filter_map(|sample| Some((sample, sample.path.as_ref()?)));
    let known: Vec<(&Sample, &Path)> = known.collect();
    // Samples with the same path are shown once.
    let alike = |a: &(&Sample, &Path), b: &(&Sample, &Path)| a.1.functions == b.1.functions;
    let shown = if verbose { usize::MAX } else { PATHS };
    known.chunk_by(alike).take(shown).map(several).collect()
}

/// Formats samples that all took the same path.
fn several(samples: &[(&Sample, &Path)]) -> String {
    let Some(((sample, path), others)) = samples.split_first() else { return String::new() };
    let mut text = format!("\n{} late at {}", sample.latency, sample.at);
    if let Some((last, _)) = others.last() {
        let _ =
            write!(text, " and {} more on the same path, down to {}", others.len(), last.latency);
    }
    let _ = writeln!(text, " ({}, CPU {})", sample.probe, sample.cpu);
    text + &one(sample, path)
}

fn one(sample: &Sample, path: &Path) -> String {
    let mut text = format!("  {} instructions", super::grouped(path.instructions()));
    let parts = [("idle", path.idle), ("before the trace", path.unseen)];
    for (name, time) in parts.into_iter().filter(|(_, time)| *time > Nanos(0)) {
        let _ = write!(text, " + {time} {name}");
    }
    text.push('\n');
    for spent in path.functions.iter().take(FUNCTIONS) {
        let share = percent(spent.instructions, sample.latency);
        let _ = writeln!(
            text,
            "{share:>7}  {:>9}  {}",
            Nanos(spent.instructions),
            printable(&spent.function)
        );
    }
    let rest: u64 = path.functions.iter().skip(FUNCTIONS).map(|one| one.instructions).sum();
    if rest > 0 {
        let others = path.functions.len() - FUNCTIONS;
        let share = percent(rest, sample.latency);
        let _ = writeln!(text, "{share:>7}  {:>9}  {others} other functions", Nanos(rest));
    }
    for (off, name) in [(Off::Interrupts, "interrupts"), (Off::Preemption, "preemption")] {
        let sections = path.held.iter().filter(|held| held.what == off).take(SECTIONS);
        let sections: Vec<String> = sections.map(|held| section(held, path.unseen)).collect();
        if !sections.is_empty() {
            let _ = writeln!(text, "  {name} off: {}", sections.join(", "));
        }
    }
    text
}

/// Formats a section, with when it began after the wake-up was due, which was `unseen` before the path.
fn section(held: &DisabledSection, unseen: Nanos) -> String {
    if held.from == Nanos(0) {
        return format!("{} since before the trace, in {}", held.ns, printable(&held.function));
    }
    format!("{} by {} (from {})", held.ns, printable(&held.function), held.from + unseen)
}

fn percent(part: u64, whole: Nanos) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let share = 100.0 * part as f64 / whole.0.max(1) as f64;
    format!("{share:.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::path::Spent;

    fn sample(latency: u64, names: &[&str]) -> Sample {
        let instructions = latency / names.len() as u64;
        let spent = |name: &&str| Spent { function: (*name).to_owned(), instructions };
        let held = |what, ns| {
            let (function, from) = ("__schedule".to_owned(), Nanos(20));
            DisabledSection { what, function, from, ns: Nanos(ns) }
        };
        let path = Path {
            functions: names.iter().map(spent).collect(),
            held: vec![
                held(Off::Interrupts, 700),
                DisabledSection { from: Nanos(0), ..held(Off::Preemption, 900) },
            ],
            ..Path::default()
        };
        Sample {
            probe: "cyclic".to_owned(),
            cpu: 0,
            at: Nanos::from_millis(1),
            latency: Nanos(latency),
            index: Some(1),
            causes: Vec::new(),
            unexplained: None,
            path: Some(path),
        }
    }

    #[test]
    fn sections_begin_after_the_wake_up_was_due() {
        let sample = sample(4_000, &["a"]);
        let path = Path { unseen: Nanos(100), ..sample.path.clone().unwrap() };
        let text = one(&sample, &path);
        assert!(text.contains("interrupts off: 700 ns by __schedule (from 120 ns)"), "{text}");
        assert!(text.contains("preemption off: 900 ns since before the trace, in "), "{text}");
    }

    #[test]
    fn same_path_is_shown_once() {
        let samples = [sample(4_000, &["a", "b"]), sample(4_000, &["a", "b"])];
        let known = samples.iter().filter_map(|one| Some((one, one.path.as_ref()?)));
        let text = several(&known.collect::<Vec<_>>());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "",
                "4 us late at 1 ms and 1 more on the same path, down to 4 us (cyclic, CPU 0)",
                "  4\u{202f}000 instructions",
                " 50.0 %       2 us  a",
                " 50.0 %       2 us  b",
                "  interrupts off: 700 ns by __schedule (from 20 ns)",
                "  preemption off: 900 ns since before the trace, in __schedule",
            ]
        );
    }
}
