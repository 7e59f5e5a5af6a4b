//! JSON of other tools: of rt-tests, and of jitterdebugger.
//! Sources: `src/cyclictest/cyclictest.c`, `src/oslat/oslat.c`, `src/ptsematest/ptsematest.c` and `src/lib/rt-utils.c`
//! of rt-tests; `jitterdebugger.c`.

use super::ForeignError;
use super::command_line::CommandLine;
use super::distribution::{Distribution, Origin, WAKE_UP, figure, record};
use crate::brief;
use crate::record::{Figure, Record};
use crate::time::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A file of rt-tests or of jitterdebugger. Some versions write keys with a colon.
#[derive(Deserialize)]
struct File {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command_line: Option<String>,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: Option<serde_json::Value>,
    sysinfo: Option<System>,
    #[serde(default)]
    resolution_in_ns: u64,
    thread: Option<BTreeMap<u32, Thread>>,
    cpu: Option<BTreeMap<u32, Thread>>,
}

#[derive(Deserialize)]
struct System {
    release: Option<String>,
}

/// A thread, a pair of threads, or a CPU.
#[derive(Deserialize)]
struct Thread {
    histogram: Option<BTreeMap<u64, u64>>,
    /// Samples in all, also those above the range.
    #[serde(alias = "count")]
    cycles: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
    avg: Option<f64>,
    /// -1 where it has none.
    cpu: Option<i64>,
    receiver: Option<Receiver>,
}

/// The latencies of a pair of threads, of which one wakes the other, in microseconds.
#[derive(Deserialize)]
struct Receiver {
    min: f64,
    avg: f64,
    max: f64,
}

/// Reads the JSON of a tool; none if it is none of the known.
pub(super) fn read(text: &str) -> Option<Result<Record, ForeignError>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let keys: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    let has = |name: &str| keys.contains_key(name);
    let is_cpu =
        |cpu: &serde_json::Value| cpu.get("histogram").is_some() && cpu.get("count").is_some();
    let cpus = keys.get("cpu").and_then(serde_json::Value::as_object);
    let kind = if has("file_version") && has("thread") {
        "rt-tests"
    } else if cpus.is_some_and(|cpus| cpus.values().next().is_some_and(is_cpu)) {
        "jitterdebugger"
    } else {
        return None;
    };
    let read = serde_json::from_str::<File>(text);
    let read = read.map_err(|e| ForeignError::at(kind, e.line(), brief::text(&e.to_string())));
    Some(read.and_then(|file| file.record(kind)))
}

impl File {
    fn record(self, kind: &'static str) -> Result<Record, ForeignError> {
        let line = self.command_line.as_deref().unwrap_or_default();
        let program = line.split_whitespace().next().unwrap_or(kind);
        let program = program.rsplit('/').next().unwrap_or(kind);
        let name = brief::text(if kind == "rt-tests" { program } else { kind }).into_owned();
        let version = self.version.as_ref().map(|version| match version.as_str() {
            Some(text) => text.to_owned(),
            None => version.to_string(),
        });
        let run = Run {
            is_cyclic: kind == "jitterdebugger" || program == "cyclictest",
            is_oslat: program == "oslat",
            // Its range is fixed.
            range: (kind == "jitterdebugger").then_some(1_000),
            options: CommandLine::of(line.split_once(program).map_or("", |(_, words)| words)),
            unit: if self.resolution_in_ns == 1 { Nanos(1) } else { Nanos::from_micros(1) },
        };
        let threads = self.thread.or(self.cpu).unwrap_or_default();
        let figures: Vec<Figure> =
            threads.iter().flat_map(|(pair, thread)| run.figures(thread, &name, *pair)).collect();
        let distributions = threads.into_iter();
        let distributions: Vec<Distribution> =
            distributions.filter_map(|(number, thread)| run.distribution(number, thread)).collect();
        if distributions.is_empty() && figures.is_empty() {
            let why = "it has no histogram, no minimum and no pair of threads";
            return Err(ForeignError::whole(kind, why));
        }
        let origin = Origin {
            tool: version.map_or_else(|| name.clone(), |of| format!("{name} {}", brief::text(&of))),
            kernel: self.sysinfo.and_then(|system| system.release),
            duration: run.options.duration(),
            rounded: run.unit.to_string(),
            has_cpus: true,
            ..Origin::default()
        };
        record(kind, &origin, distributions, figures)
    }
}

/// How a file was measured.
struct Run {
    /// Whether it is the latency of cyclictest.
    is_cyclic: bool,
    is_oslat: bool,
    /// End of the histogram's range, where every run has the same.
    range: Option<u64>,
    options: CommandLine,
    /// The unit of the values.
    unit: Nanos,
}

impl Run {
    fn time(&self, value: u64) -> Nanos {
        Nanos(value.saturating_mul(self.unit.0))
    }

    /// Whether a thread has a distribution: without a histogram asked for, rt-tests write an empty one.
    fn has_distribution(&self, thread: &Thread) -> bool {
        let is_filled = |buckets: &BTreeMap<u64, u64>| buckets.values().any(|count| *count > 0);
        let is_asked = self.options.range().is_some();
        thread.histogram.as_ref().is_some_and(|buckets| is_asked || is_filled(buckets))
    }

    fn distribution(&self, number: u32, thread: Thread) -> Option<Distribution> {
        if !self.has_distribution(&thread) {
            return None;
        }
        let mut buckets = thread.histogram?;
        let top = buckets.last_key_value().map_or(0, |(index, _)| *index);
        let is_open = self.is_oslat && top >= self.options.last_bucket();
        let beyond = if is_open && thread.max.is_some_and(|max| max > top) {
            (self.time(top), buckets.remove(&top).unwrap_or(0))
        } else {
            let binned = buckets.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
            let above = thread.cycles.unwrap_or(binned).saturating_sub(binned);
            let end = self.range.or_else(|| self.options.range()).unwrap_or(0);
            (self.time(end.max(top.saturating_add(1))), above)
        };
        let thread_number = u64::from(number);
        Some(Distribution {
            probe: if self.is_cyclic { "cyclic" } else { "oslat" },
            span: if self.is_cyclic { WAKE_UP } else { ("start of a noise", "its end") },
            cpu: thread.cpu.and_then(|cpu| cpu.try_into().ok()).unwrap_or(number),
            buckets: buckets.into_iter().map(|(index, count)| (self.time(index), count)).collect(),
            width: self.unit,
            beyond,
            min: thread.min.map(|min| self.time(min)),
            max: thread.max.map(|max| self.time(max)),
            interval: self.options.interval(thread_number).filter(|_| self.is_cyclic),
            periods: self.options.periods(thread_number).filter(|_| self.is_cyclic),
            schedule: self.options.schedule(),
        })
    }

    /// The latencies of a pair, or of a thread without a distribution, in nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "they are shown with some digits")]
    fn figures(&self, thread: &Thread, program: &str, number: u32) -> Vec<Figure> {
        let (of, [min, mean, max]) = match (&thread.receiver, thread.min, thread.max) {
            (Some(pair), ..) => ("pair", [Some(pair.min), Some(pair.avg), Some(pair.max)]),
            (None, Some(min), Some(max)) if !self.has_distribution(thread) => {
                ("thread", [Some(min as f64), thread.avg, Some(max as f64)])
            }
            _ => return Vec::new(),
        };
        let figure = |(name, value): (&str, Option<f64>)| {
            let value = value? * self.unit.0 as f64;
            Some(figure(program, format!("{of} {number}: {name}"), value, "ns"))
        };
        [("min", min), ("mean", mean), ("max", max)].into_iter().filter_map(figure).collect()
    }
}
