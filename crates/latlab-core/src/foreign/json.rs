//! JSON of other tools: of rt-tests, and of jitterdebugger.
//! Sources: `src/cyclictest/cyclictest.c`, `src/oslat/oslat.c`, `src/ptsematest/ptsematest.c` and `src/lib/rt-utils.c`
//! of rt-tests; `jitterdebugger.c`.

use super::ForeignError;
use super::command_line::CommandLine;
use super::distribution::{Distribution, Origin, WAKE_UP, record};
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
    cpu: Option<u32>,
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
    let kind = if has("file_version") && has("thread") {
        "rt-tests"
    } else if has("cpu") && !has("schema") && !has("series") {
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
            options: CommandLine::of(line.split_once(program).map_or("", |(_, words)| words)),
            unit: if self.resolution_in_ns == 1 { Nanos(1) } else { Nanos::from_micros(1) },
        };
        let threads = self.thread.or(self.cpu).unwrap_or_default();
        let figures: Vec<Figure> =
            threads.iter().flat_map(|(pair, thread)| thread.figures(&name, *pair)).collect();
        let distributions = threads.into_iter();
        let distributions: Vec<Distribution> =
            distributions.filter_map(|(number, thread)| run.distribution(number, thread)).collect();
        if distributions.is_empty() && figures.is_empty() {
            let why = "it has no histogram and no pair of threads: cyclictest writes a histogram with \
                       --histogram=400";
            return Err(ForeignError::whole(kind, why));
        }
        let origin = Origin {
            tool: version.map_or_else(|| name.clone(), |of| format!("{name} {}", brief::text(&of))),
            kernel: self.sysinfo.and_then(|system| system.release),
            duration: run.options.duration(),
            resolution: run.unit,
            ..Origin::default()
        };
        Ok(Record { figures, ..record(&origin, &distributions) })
    }
}

/// How a file was measured.
struct Run {
    /// Whether it is the latency of cyclictest.
    is_cyclic: bool,
    is_oslat: bool,
    options: CommandLine,
    /// The unit of the values.
    unit: Nanos,
}

impl Run {
    fn distribution(&self, number: u32, thread: Thread) -> Option<Distribution> {
        let mut buckets = thread.histogram?;
        let time = |value: u64| Nanos(value.saturating_mul(self.unit.0));
        let top = buckets.last_key_value().map_or(0, |(index, _)| *index);
        // The last bucket of oslat has what is above it, too.
        let beyond = if self.is_oslat && thread.max.is_some_and(|max| max > top) {
            (time(top), buckets.remove(&top).unwrap_or(0))
        } else {
            let binned = buckets.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
            let above = thread.cycles.unwrap_or(binned).saturating_sub(binned);
            (time(self.options.range().unwrap_or(0).max(top.saturating_add(1))), above)
        };
        let interval = self.options.interval(u64::from(number)).filter(|_| self.is_cyclic);
        let duration = self.options.duration().zip(interval);
        Some(Distribution {
            probe: if self.is_cyclic { "cyclic" } else { "oslat" },
            span: if self.is_cyclic { WAKE_UP } else { ("start of a noise", "its end") },
            cpu: thread.cpu.unwrap_or(number),
            buckets: buckets.into_iter().map(|(index, count)| (time(index), count)).collect(),
            beyond,
            min: thread.min.map(time),
            max: thread.max.map(time),
            interval,
            periods: duration.map(|(duration, interval)| duration.0 / interval.0.max(1)),
            schedule: self.options.schedule(),
        })
    }
}

impl Thread {
    /// The latencies of a pair, in nanoseconds.
    fn figures(&self, program: &str, pair: u32) -> Vec<Figure> {
        let figure = |(name, micros): (&str, f64)| Figure {
            probe: program.to_owned(),
            name: format!("pair {pair}: {name}"),
            value: micros * 1_000.0,
            unit: "ns".to_owned(),
            load: Vec::new(),
            profile: None,
        };
        let of = |of: &Receiver| [("min", of.min), ("mean", of.avg), ("max", of.max)].map(figure);
        self.receiver.as_ref().map(of).into_iter().flatten().collect()
    }
}
