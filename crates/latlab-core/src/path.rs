//! Path of a late wake-up: every instruction from when it was due until it ran.
//!
//! The laboratory's QEMU plugin traces it; here it is reduced to functions.

mod disabled;
mod fold;
mod frames;
mod innermost;
mod misses;
mod trace;
mod walk;

pub use frames::Frame;
pub use misses::Misses;
pub use trace::{DamagedTrace, Effect, Run, Trace};

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use walk::{RawStep, Walk};

/// The name of time in which no instruction was executed.
pub const IDLE: &str = "[idle]";
/// The name of programs, whose functions are not known.
pub const PROGRAM: &str = "[program]";

/// The instructions that a CPU executed during a latency. In the laboratory one instruction takes
/// one nanosecond: the instructions of all steps, idle time included, and the unseen time add up to
/// the latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// The time for which the CPU was idle. Where timers fire at ticks only, that is their delay.
    pub idle: Nanos,
    /// The time before the first instruction that the plugin has kept.
    pub unseen: Nanos,
    /// The functions in the order in which they ran. Where there are too many steps, the deepest
    /// calls are part of their callers.
    pub steps: Vec<Step>,
    /// The instructions of each function itself, without callees, the most expensive first.
    pub functions: Vec<Spent>,
    /// The sections with interrupts or preemption disabled, the longest first.
    pub held: Vec<DisabledSection>,
}

/// A part of the path in one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The function with its module, [`IDLE`] or [`PROGRAM`].
    pub function: String,
    /// Number of instructions; of idle time, its nanoseconds.
    pub instructions: u64,
    /// Call depth, from the outermost function of the path.
    pub depth: u32,
}

/// The instructions of a function in all of its steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The function.
    pub function: String,
    /// Number of instructions, without callees.
    pub instructions: u64,
}

/// A section with interrupts or preemption disabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisabledSection {
    /// Whether interrupts or preemption were disabled.
    pub what: Off,
    /// The function that began it, or that took the lock which did; the first function of the path
    /// where that was before the path.
    pub function: String,
    /// When it began, after the begin of the steps: the wake-up was due [`Path::unseen`] before that.
    pub from: Nanos,
    /// Its length within the path.
    pub ns: Nanos,
}

/// The kinds of disabled sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Off {
    /// Interrupts (`cli`, or the entry into a handler).
    Interrupts,
    /// Preemption (the kernel's preemption counter is not zero).
    Preemption,
}

/// The function that contains an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Its name.
    pub function: &'a str,
    /// The offset of the address in it.
    pub offset: u64,
}

/// The largest call depth of a step. No kernel stack has room for as many calls.
const DEEPEST: u32 = 1_000;

impl Path {
    /// Returns an inconsistency, if there is one.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let deepest = self.steps.iter().map(|step| step.depth).max().unwrap_or(0);
        if deepest > DEEPEST {
            return Some("a step of its path is deeper than any kernel stack");
        }
        let mut steps = self.steps.iter().map(|step| step.instructions);
        let mut functions = self.functions.iter().map(|spent| spent.instructions);
        let sums = [
            steps.try_fold(self.unseen.0, u64::checked_add),
            functions.try_fold(0, u64::checked_add),
        ];
        let ends = self.held.iter().map(|held| held.from.0.checked_add(held.ns.0));
        let is_endless = sums.into_iter().chain(ends).any(|time| time.is_none());
        is_endless.then_some("its path takes longer than any run")
    }

    /// Returns the path of a sample. `place` finds the kernel function of an address.
    pub fn of<'a>(trace: &Trace, place: impl Fn(u64) -> Option<Location<'a>>) -> Path {
        let runs = trace.last(trace.latency.0);
        let seen: u64 = runs.iter().map(Run::length).sum();
        let mut walk = Walk::default();
        for run in &runs {
            match run {
                Run::Idle(ns) => walk.idle(*ns),
                Run::Block { block, skipped, executed, times } => {
                    let block = &trace.blocks[block];
                    let place = place(block.address);
                    walk.run(block, place, (*skipped, *executed), *times);
                }
            }
        }
        walk.path(Nanos(trace.latency.0 - seen))
    }

    /// Returns the kernel function that executed most instructions, and the innermost function that
    /// nearly all of the path ran in, where that is another: `clear_page_erms in
    /// get_page_from_freelist`.
    pub fn culprit(&self) -> Option<String> {
        let mut functions = self.functions.iter().map(|spent| spent.function.as_str());
        let busiest = functions.find(|function| *function != PROGRAM)?;
        Some(match innermost::innermost(&self.steps) {
            Some(around) if around != busiest => format!("{busiest} in {around}"),
            _ => busiest.to_owned(),
        })
    }

    /// Returns the number of instructions of the path, without idle time.
    pub fn instructions(&self) -> u64 {
        self.functions.iter().map(|spent| spent.instructions).sum()
    }
}

#[cfg(test)]
mod tests;
