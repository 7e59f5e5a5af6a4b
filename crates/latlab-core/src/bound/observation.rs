//! What one run has shown: its longest sections, its interrupts, and its timer's delay.

use super::trace::{RawInterrupt, RawSection, Trace, Wake};
use super::{Interrupt, Section, Term};
use crate::path::{Location, PROGRAM};
use crate::record::Record;
use crate::time::Nanos;
use std::collections::HashMap;

/// What one run has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The longest section of each term.
    pub sections: HashMap<Term, Section>,
    /// All interrupts, in the order in which they ended.
    pub interrupts: Vec<Interrupt>,
    /// The longest delay of the hardware timer, from when the probe was due.
    pub timer: Nanos,
    /// The longest latency.
    pub maximum: Nanos,
    /// Number of samples.
    pub samples: u64,
    /// By how much the count of instructions may be wrong, in all sections together.
    pub uncertain: Nanos,
}

/// A larger difference is no fault of a single instruction. Before, every difference was refused: one of
/// an instruction left a bound of hundreds of microseconds unsaid.
const MOST_APART: u64 = 100;

/// Why a run shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoObservation {
    /// Instructions and time differ.
    #[error("the plugin's count of instructions is off by {0}: nothing is composed")]
    Apart(u64),
    /// The plugin lost track of the preemption counter.
    #[error("the plugin's preemption counter is {0} where a program runs: nothing is composed")]
    Drift(i64),
    /// Fewer samples than the record has: the trace was cut off.
    #[error("the plugin saw {seen} of {samples} samples: nothing is composed")]
    Cut {
        /// Number of samples in the trace.
        seen: u64,
        /// Number of samples in the record.
        samples: u64,
    },
    /// No sample whose latency is known is in the trace.
    #[error("the plugin saw none of the worst samples: nothing is composed")]
    NoSample,
}

impl Observation {
    /// Returns what a run with one probe on one CPU has shown. `place` finds the kernel function of
    /// an address.
    pub fn of<'a>(
        trace: &Trace,
        record: &Record,
        place: impl Fn(u64) -> Option<Location<'a>>,
    ) -> Result<Observation, NoObservation> {
        if trace.apart > MOST_APART {
            return Err(NoObservation::Apart(trace.apart));
        }
        if trace.drift != 0 {
            return Err(NoObservation::Drift(trace.drift));
        }
        let samples = record.series.iter().map(|series| series.counts.recorded).sum();
        let seen = trace.wakes.len() as u64;
        if seen < samples {
            return Err(NoObservation::Cut { seen, samples });
        }
        let runs_on = matches!(record.machine.preempt.as_deref(), Some("none" | "voluntary"));
        let applies = |raw: &&RawSection| raw.runs_on.is_none_or(|of| of == runs_on);
        let mut sections = HashMap::new();
        // Each later one of a kind is longer.
        for raw in trace.sections.iter().filter(applies) {
            let (begin, end) = (function(&raw.begin, &place), function(&raw.end, &place));
            sections.insert(raw.term, Section { ns: raw.length, begin, end });
        }
        let interrupt = |raw: &RawInterrupt| Interrupt {
            name: entry(raw.address, &place),
            begin: raw.begin,
            end: raw.end,
            own: raw.own,
        };
        Ok(Observation {
            sections,
            interrupts: trace.interrupts.iter().map(interrupt).collect(),
            timer: timer_delay(&trace.wakes, record)?,
            maximum: record.series.iter().map(|series| series.max).max().unwrap_or_default(),
            uncertain: Nanos(trace.apart),
            samples,
        })
    }
}

/// The longest time for which a timer was due and the CPU could have taken its interrupt. Where
/// timers expire at ticks: the longest time until the interrupt, because it is the tick's. The
/// probe is due once in each interval, so one sample with a known latency gives the due times of
/// all others.
fn timer_delay(wakes: &[Wake], record: &Record) -> Result<Nanos, NoObservation> {
    let interval = record.series.iter().find_map(|series| series.interval).unwrap_or(Nanos(1));
    let known: HashMap<u64, Nanos> =
        record.worst.iter().filter_map(|sample| Some((sample.index?, sample.latency))).collect();
    let due = |wake: &Wake| Some(Nanos(wake.read.0.saturating_sub(known.get(&wake.index)?.0)));
    let at_ticks = record.machine.timer_resolution_ns.is_some_and(|ns| ns > 1);
    let some_due = wakes.iter().find_map(due).ok_or(NoObservation::NoSample)?;
    let delay = |wake: &Wake| {
        let since = wake.read.0.wrapping_sub(some_due.0).cast_signed();
        let late = since.rem_euclid(interval.0.max(1).cast_signed()).cast_unsigned();
        let due = due(wake).unwrap_or(Nanos(wake.read.0.saturating_sub(late)));
        let delay = Nanos(wake.interrupt.0.saturating_sub(due.0));
        if at_ticks { delay } else { delay.min(wake.enabled) }
    };
    Ok(wakes.iter().map(delay).max().unwrap_or_default())
}

/// The function of the first address, or its caller where it only takes or releases a lock.
fn function<'a>(addresses: &[u64], place: impl Fn(u64) -> Option<Location<'a>>) -> String {
    let names = addresses.iter().filter_map(|address| Some(place(*address)?.function));
    let mut names: Vec<&str> = names.collect();
    let first = names.first().copied();
    names.retain(|name| !name.starts_with("_raw_"));
    names.first().copied().or(first).unwrap_or(PROGRAM).to_owned()
}

/// The name of an interrupt. The stubs of devices have one symbol, and differ in their offset.
fn entry<'a>(address: u64, place: impl Fn(u64) -> Option<Location<'a>>) -> String {
    match place(address) {
        Some(Location { function, offset: 0 }) => {
            function.strip_prefix("asm_").unwrap_or(function).to_owned()
        }
        Some(Location { function, offset }) => format!("{function}+{offset:#x}"),
        None => format!("{address:#x}"),
    }
}
