//! The automatic analysis of rtla: why the sample that ended the run was late.
//! Source: `tools/tracing/rtla/src/timerlat_aa.c` of Linux.

use super::ForeignError;
use super::distribution::{Origin, figure, record};
use crate::brief;
use crate::record::Record;
use std::borrow::Cow;

const TOOL: &str = "rtla timerlat";

/// Functions at the inner end of a stack trace, without leading underscores: the timer interrupt that took it, and
/// its entry.
const OF_INTERRUPT: [&str; 7] = [
    "timerlat_irq",
    "hrtimer_run_queues",
    "hrtimer_interrupt",
    "sysvec_apic_timer_interrupt",
    "asm_sysvec_apic_timer_interrupt",
    "arch_timer_handler",
    "handle_percpu_devid_irq",
];

/// Reads an analysis; none if the text has none.
pub(super) fn read(text: &str) -> Option<Result<Record, ForeignError>> {
    let (line, analysis, more) = first(text)?;
    Some(analysis.record(line, more))
}

/// What the analysis in a text says, in a sentence.
pub(super) fn remark(text: &str) -> Option<String> {
    let (_, analysis, _) = first(text)?;
    analysis.latency.map(|(name, latency)| analysis.sentence(name, latency))
}

/// The first analysis of a text, the line where it begins, and the number of others.
fn first(text: &str) -> Option<(usize, Analysis<'_>, usize)> {
    let cpu = |line: &str| {
        line.trim().strip_prefix("## CPU ")?.split_once(" hit stop tracing")?.0.parse().ok()
    };
    let cpus: Vec<(usize, u32)> =
        text.lines().enumerate().filter_map(|(nth, line)| Some((nth, cpu(line)?))).collect();
    let (&(first, cpu), others) = cpus.split_first()?;
    let end = others.first().map_or(usize::MAX, |(next, _)| *next);
    let lines: Vec<&str> = text.lines().take(end).skip(first + 1).collect();
    Some((first + 1, Analysis::of(&lines, cpu), others.len()))
}

/// An analysis of one CPU.
#[derive(Default)]
struct Analysis<'a> {
    cpu: u32,
    /// Times by their names, in the order of the text.
    times: Vec<(String, f64)>,
    /// The thread that ran.
    blocking: Option<&'a str>,
    /// Where it was interrupted, the innermost function first.
    stack: Vec<&'a str>,
    /// The latency that was above the threshold: of the interrupt, or of the thread.
    latency: Option<(&'a str, f64)>,
}

impl<'a> Analysis<'a> {
    fn of(lines: &[&'a str], cpu: u32) -> Analysis<'a> {
        let mut analysis = Analysis { cpu, ..Analysis::default() };
        let mut section = "";
        for line in lines.iter().map(|line| line.trim()) {
            let (name, rest) = match line.split_once(": ") {
                Some((name, rest)) => (name, rest),
                None => (line.trim_end_matches(':'), ""),
            };
            let micros = micros(line);
            if let Some(function) = line.strip_prefix("-> ") {
                analysis.stack.push(function);
            } else if line.starts_with("---") {
                section = "end";
            } else if let ("end", Some(time)) = (section, micros) {
                analysis.latency = Some((name, time));
                break;
            } else if line.starts_with("Blocking thread stack trace") {
                section = "stack";
            } else if let Some(part) = PARTS.iter().find(|part| line.starts_with(**part)) {
                section = part;
                analysis.times.extend(micros.map(|time| ((*part).to_owned(), time)));
            } else if line.contains(':') && !line.contains("->") && !rest.starts_with("up to") {
                let name = line.split_whitespace().next().unwrap_or_default();
                if section == "Blocking thread" {
                    analysis.blocking = Some(name);
                } else if let Some(time) = micros {
                    analysis.times.push((format!("{section}: {name}"), time));
                }
            }
        }
        analysis
    }

    fn record(&self, line: usize, more: usize) -> Result<Record, ForeignError> {
        let Some((name, latency)) = self.latency else {
            let why =
                "the analysis that begins here has no latency at its end: the text is cut short";
            return Err(ForeignError::at(TOOL, line, why));
        };
        let figure = |(name, micros): (&str, f64)| {
            figure("timerlat", brief::text(name).into_owned(), micros * 1_000.0, "ns")
        };
        let more = (more > 0)
            .then(|| format!("{more} more analyses follow in the file, which are not read"));
        let origin = Origin {
            tool: TOOL.to_owned(),
            rounded: "10 ns".to_owned(),
            has_cpus: true,
            remarks: std::iter::once(self.sentence(name, latency)).chain(more).collect(),
            ..Origin::default()
        };
        let parts = self.times.iter().map(|(name, time)| (name.as_str(), *time));
        let parts = parts.filter(|(part, _)| *part != name);
        let figures = std::iter::once((name, latency)).chain(parts).map(figure).collect();
        let mut record = record(TOOL, &origin, Vec::new(), figures)?;
        record.plan.cpus = std::iter::once(self.cpu).collect();
        Ok(record)
    }

    /// Which code ran meanwhile.
    fn sentence(&self, name: &str, latency: f64) -> String {
        let is_late = if name.starts_with("IRQ") {
            "the timer interrupt was late, so interrupts were disabled, or the CPU stood still"
        } else {
            "the thread was late"
        };
        let inner = self.stack.iter().filter(|function| !is_of_interrupt(function)).take(3);
        let inner: Vec<Cow<'_, str>> = inner.map(|function| brief::text(function)).collect();
        let ran = self
            .blocking
            .map_or(String::new(), |thread| format!("; {} was running", brief::text(thread)));
        let place = if inner.is_empty() {
            String::new()
        } else {
            format!(", in {}", inner.join(", called by "))
        };
        format!("CPU {}: {latency} us: {is_late}{ran}{place}", self.cpu)
    }
}

fn is_of_interrupt(function: &str) -> bool {
    OF_INTERRUPT.contains(&function.trim_start_matches("__"))
}

/// The parts of a latency, by the begin of their line.
const PARTS: [&str; 9] = [
    "Previous IRQ interference",
    "IRQ handler delay",
    "IRQ latency",
    "Timerlat IRQ duration",
    "Blocking thread",
    "NMI interference",
    "IRQ interference",
    "Softirq interference",
    "Thread interference",
];

/// The time in a line: the number before `us`.
fn micros(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "us")?;
    words
        .get(at.checked_sub(1)?)?
        .parse()
        .ok()
        .filter(|time: &f64| time.is_finite() && *time >= 0.0)
}
