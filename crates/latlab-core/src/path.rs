//! The path of a late wake-up: every instruction from when it was due until it ran, function by
//! function, as the laboratory's plugin of QEMU has seen it.

mod fold;
mod frames;
mod held;
mod trace;
mod whole;

pub use frames::Frame;
pub use trace::{DamagedTrace, Event, Run, Watched};

use crate::time::Nanos;
use held::Holds;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use trace::Block;

/// How the time in which nothing was executed is called.
pub const IDLE: &str = "[idle]";
/// How programs are called, whose functions nobody has named.
pub const PROGRAM: &str = "[program]";
/// How kernel code without a name is called.
const UNKNOWN: &str = "[unknown]";

/// What a CPU executed during a latency. In the laboratory one instruction takes one nanosecond:
/// the instructions of all steps, idle time among them, and what was not seen are the latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// How much of the latency the CPU was idle: what timers are late by where they only fire at
    /// ticks.
    pub idle: Nanos,
    /// How much of it lies before all that the plugin has kept.
    pub unseen: Nanos,
    /// What ran, in its order; what was called by a step that had to be kept short is part of it.
    pub steps: Vec<Step>,
    /// What each function executed itself, the most expensive first.
    pub functions: Vec<Spent>,
    /// When interrupts or preemption were off, the longest first.
    pub held: Vec<Held>,
}

/// A stretch of the path in one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The function, with its module; [`IDLE`], [`PROGRAM`].
    pub function: String,
    /// How many it executed; of idle time, how many would have fitted in.
    pub instructions: u64,
    /// How deep it was called, from the outermost function of the path.
    pub depth: u32,
}

/// What a function executed in all of its steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The function.
    pub function: String,
    /// How many instructions of its own.
    pub instructions: u64,
}

/// A stretch in which something was held off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What.
    pub what: Off,
    /// The function that began it, or had a lock taken that does; the path's first one where that
    /// was before the path.
    pub function: String,
    /// When, after the wake-up was due.
    pub from: Nanos,
    /// How long, within the path.
    pub ns: Nanos,
}

/// What can be held off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Off {
    /// Interrupts (`cli`, and entering a handler).
    Interrupts,
    /// Preemption (the kernel's counter is not zero).
    Preemption,
}

/// The function at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Its name.
    pub function: &'a str,
    /// How far the address is from its begin.
    pub offset: u64,
}

impl Path {
    /// The path of a sample. `place` names the functions of the kernel.
    pub fn of<'a>(watched: &Watched, place: impl Fn(u64) -> Option<Place<'a>>) -> Path {
        let runs = watched.last(watched.latency.0);
        let seen: u64 = runs.iter().map(Run::length).sum();
        let mut walk = Walk::default();
        for run in &runs {
            match run {
                Run::Idle(ns) => walk.idle(*ns),
                Run::Block { block, skipped, executed, times } => {
                    let block = &watched.blocks[block];
                    let place = place(block.address);
                    walk.run(block, place, (*skipped, *executed), *times);
                }
            }
        }
        walk.path(Nanos(watched.latency.0 - seen))
    }

    /// The kernel function that executed most, and of those that nearly all of the path ran in, the
    /// innermost, where that is another one: `clear_page_erms in get_page_from_freelist`.
    pub fn culprit(&self) -> Option<String> {
        let mut functions = self.functions.iter().map(|spent| spent.function.as_str());
        let busiest = functions.find(|function| *function != PROGRAM)?;
        Some(match whole::innermost(&self.steps) {
            Some(around) if around != busiest => format!("{busiest} in {around}"),
            _ => busiest.to_owned(),
        })
    }

    /// All instructions of the path, idle time left out.
    pub fn instructions(&self) -> u64 {
        self.functions.iter().map(|spent| spent.instructions).sum()
    }
}

/// One step while it is made: number of the function, instructions, depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Raw {
    function: usize,
    instructions: u64,
    depth: i64,
}

/// The walk along a path.
#[derive(Debug, Default)]
struct Walk {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    steps: Vec<Raw>,
    holds: Holds,
    idle: u64,
    at: u64,
    depth: i64,
    /// Whether a program has run, from which on depths count.
    grounded: bool,
    /// Whether the last block was a stub through which an interrupt comes in.
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
            _ => self.steps.push(Raw { function, instructions, depth }),
        }
    }

    /// A block of which, in each run, the instructions before the first and after the second
    /// number do not belong to the path.
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
            self.holds.enter(self.at, function);
        }
        self.stub = name.ends_with("_entries_start");
        if block.is_program() {
            self.ground();
            self.holds.program(self.at);
        }
        let length = executed - skipped;
        self.step(function, length * times);
        for event in block.events.iter().filter(|event| {
            let after = u64::from(event.after());
            after > skipped && after <= executed
        }) {
            let at = self.at + u64::from(event.after()) - skipped;
            match event {
                // What a program calls is the program.
                Event::Call(_) | Event::Return(_) if block.is_program() => {}
                Event::Call(_) => self.depth += 1,
                Event::Return(_) => self.rise(1),
                Event::Leave(_) => {
                    self.rise(0);
                    self.holds.hear(event, at, function);
                }
                _ => {
                    let function = self.culprit(function);
                    self.holds.hear(event, at, function);
                }
            }
        }
        self.at += length * times;
    }

    /// A program runs: none of the kernel's functions is on the stack. Of tasks that were switched
    /// to, nobody knows how deep they were, so that all depths begin anew here, and those before
    /// the first program are brought in line with it.
    fn ground(&mut self) {
        if !self.grounded {
            self.steps.iter_mut().for_each(|step| step.depth -= self.depth);
            self.grounded = true;
        }
        self.depth = 0;
    }

    /// A function returns: a task that was switched to may have had more of them than are known.
    fn rise(&mut self, highest: i64) {
        let highest = if self.grounded { highest } else { i64::MIN };
        self.depth = (self.depth - 1).max(highest);
    }

    /// Who is behind what a function does: the caller of one that only takes or gives a lock.
    fn culprit(&self, function: usize) -> usize {
        let is_lock = |function: usize| self.names[function].starts_with("_raw_");
        if !is_lock(function) {
            return function;
        }
        let caller = |step: &&Raw| step.depth < self.depth && !is_lock(step.function);
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
        let step = |raw: &Raw| Step {
            function: name(raw.function),
            instructions: raw.instructions,
            depth: u32::try_from(raw.depth - lowest).unwrap_or(u32::MAX),
        };
        let held = self.holds.end(self.at).into_iter().map(|hold| Held {
            what: hold.what,
            function: name(hold.function),
            from: Nanos(hold.from),
            ns: Nanos(hold.length),
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

/// Whether an interrupt, an exception or a program comes into the kernel here, which finds
/// interrupts off (`arch/x86/entry/entry_64.S`).
fn enters(place: Place<'_>) -> bool {
    let name = place.function;
    // All vectors of devices have a stub of their own, under one name.
    name.ends_with("_entries_start")
        || place.offset == 0 && (name.starts_with("asm_") || name == "entry_SYSCALL_64")
}

#[cfg(test)]
mod tests;
