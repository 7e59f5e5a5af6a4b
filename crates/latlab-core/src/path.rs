//! Path of a late wake-up: every instruction from when it was due until it ran, function by
//! function, as the laboratory's QEMU plugin traces it.

mod disabled;
mod fold;
mod frames;
mod innermost;
mod trace;

pub use frames::Frame;
pub use trace::{DamagedTrace, Event, Run, Watched};

use crate::time::Nanos;
use disabled::Changes;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use trace::Block;

/// The name of time in which no instruction was executed.
pub const IDLE: &str = "[idle]";
/// The name of programs, whose functions are not known.
pub const PROGRAM: &str = "[program]";
/// The name of kernel code without a symbol.
const UNKNOWN: &str = "[unknown]";

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
    pub held: Vec<Held>,
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
pub struct Held {
    /// What was disabled.
    pub what: Off,
    /// The function that began it, or that took the lock which did; the first function of the path
    /// where that was before the path.
    pub function: String,
    /// When it began, after the wake-up was due.
    pub from: Nanos,
    /// Its length within the path.
    pub ns: Nanos,
}

/// What can be disabled.
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
pub struct Place<'a> {
    /// Its name.
    pub function: &'a str,
    /// The offset of the address in it.
    pub offset: u64,
}

impl Path {
    /// Returns the path of a sample. `place` finds the kernel function of an address.
    pub fn of<'a>(trace: &Watched, place: impl Fn(u64) -> Option<Place<'a>>) -> Path {
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

/// A step of the walk, with its function by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawStep {
    function: usize,
    instructions: u64,
    depth: i64,
}

/// The walk along the blocks of a trace.
#[derive(Debug, Default)]
struct Walk {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    steps: Vec<RawStep>,
    changes: Changes,
    idle: u64,
    at: u64,
    depth: i64,
    /// Whether a program has run, from which on depths are known.
    grounded: bool,
    /// Whether the last block was the entry stub of an interrupt.
    stub: bool,
}

impl Walk {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    fn idle(&mut self, ns: u64) {
        let function = self.number(IDLE);
        self.step(function, ns);
        self.idle += ns;
        self.at += ns;
    }

    fn step(&mut self, function: usize, instructions: u64) {
        let depth = self.depth;
        match self.steps.last_mut() {
            Some(last) if last.function == function && last.depth == depth => {
                last.instructions += instructions;
            }
            _ => self.steps.push(RawStep { function, instructions, depth }),
        }
    }

    /// Adds a block that ran several times. Of its instructions only those after the first and up
    /// to the second number of `part` belong to the path.
    fn run(&mut self, block: &Block, place: Option<Place<'_>>, part: (u64, u64), times: u64) {
        let (skipped, executed) = part;
        let name = match place {
            _ if block.is_program() => PROGRAM,
            Some(place) => place.function,
            None => UNKNOWN,
        };
        let function = self.number(name);
        if skipped == 0 && !self.stub && place.is_some_and(|place| enters(place)) {
            self.depth += 1;
            self.changes.enter(self.at, function);
        }
        self.stub = name.ends_with("_entries_start");
        if block.is_program() {
            self.ground();
            self.changes.program(self.at);
        }
        let length = executed - skipped;
        self.step(function, length * times);
        for event in block.events.iter().filter(|event| {
            let after = u64::from(event.after());
            after > skipped && after <= executed
        }) {
            let at = self.at + u64::from(event.after()) - skipped;
            match event {
                // Calls within a program are part of it.
                Event::Call(_) | Event::Return(_) if block.is_program() => {}
                Event::Call(_) => self.depth += 1,
                Event::Return(_) => self.rise(1),
                Event::Leave(_) => {
                    self.rise(0);
                    self.changes.note(event, at, function);
                }
                _ => {
                    let function = self.culprit(function);
                    self.changes.note(event, at, function);
                }
            }
        }
        self.at += length * times;
    }

    /// Notes that a program runs, so that no kernel function is on the stack. The depth of tasks
    /// that were switched to is unknown: depths start at 0 again, and those before the first
    /// program are made relative to it.
    fn ground(&mut self) {
        if !self.grounded {
            self.steps.iter_mut().for_each(|step| step.depth -= self.depth);
            self.grounded = true;
        }
        self.depth = 0;
    }

    /// Notes that a function returns. A task that was switched to may return from more functions
    /// than are known.
    fn rise(&mut self, highest: i64) {
        let highest = if self.grounded { highest } else { i64::MIN };
        self.depth = (self.depth - 1).max(highest);
    }

    /// The function to blame: the caller where the function only takes or releases a lock.
    fn culprit(&self, function: usize) -> usize {
        let is_lock = |function: usize| self.names[function].starts_with("_raw_");
        if !is_lock(function) {
            return function;
        }
        let caller = |step: &&RawStep| step.depth < self.depth && !is_lock(step.function);
        self.steps.iter().rev().find(caller).map_or(function, |step| step.function)
    }

    fn path(self, unseen: Nanos) -> Path {
        let name = |number: usize| self.names[number].clone();
        let mut spent = vec![0; self.names.len()];
        for step in &self.steps {
            spent[step.function] += step.instructions;
        }
        let functions = spent.iter().enumerate().map(|(number, instructions)| Spent {
            function: name(number),
            instructions: *instructions,
        });
        let mut functions: Vec<Spent> = functions.filter(|one| one.function != IDLE).collect();
        functions.sort_by(|a, b| (b.instructions, &a.function).cmp(&(a.instructions, &b.function)));
        let steps = fold::fold(&self.steps);
        let lowest = steps.iter().map(|step| step.depth).min().unwrap_or(0);
        let step = |raw: &RawStep| Step {
            function: name(raw.function),
            instructions: raw.instructions,
            depth: u32::try_from(raw.depth - lowest).unwrap_or(u32::MAX),
        };
        let held = self.changes.sections(self.at).into_iter().map(|section| Held {
            what: section.what,
            function: name(section.function),
            from: Nanos(section.from),
            ns: Nanos(section.length),
        });
        Path {
            idle: Nanos(self.idle),
            unseen,
            steps: steps.iter().map(step).collect(),
            functions,
            held: held.collect(),
        }
    }
}

/// Whether this is an entry into the kernel by an interrupt, an exception or a system call, which
/// runs with interrupts disabled (`arch/x86/entry/entry_64.S`).
fn enters(place: Place<'_>) -> bool {
    let name = place.function;
    // The stubs of all device vectors have one name.
    name.ends_with("_entries_start")
        || place.offset == 0 && (name.starts_with("asm_") || name == "entry_SYSCALL_64")
}

#[cfg(test)]
mod tests;
