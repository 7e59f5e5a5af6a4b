//! The walk along a trace, which finds the function and the call depth of each block.

use super::disabled::Changes;
use super::trace::{Block, Effect};
use super::{DEEPEST, DisabledSection, IDLE, Location, PROGRAM, Path, Spent, Step, fold};
use crate::time::Nanos;
use std::collections::HashMap;

/// The name of kernel code without a symbol.
const UNKNOWN: &str = "[unknown]";

/// A step of the walk, with its function by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawStep {
    pub(super) function: usize,
    pub(super) instructions: u64,
    pub(super) depth: i64,
}

/// The walk along the blocks of a trace.
#[derive(Debug, Default)]
pub(super) struct Walk {
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
    pub(super) fn idle(&mut self, ns: u64) {
        let function = self.number(IDLE);
        self.step(function, ns);
        self.idle += ns;
        self.at += ns;
    }

    /// Adds a block that ran several times. Only its instructions after the first and up to the
    /// second number of `part` belong to the path.
    pub(super) fn run(
        &mut self,
        block: &Block,
        place: Option<Location<'_>>,
        part: (u64, u64),
        times: u64,
    ) {
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
        for effect in block.effects.iter().filter(|effect| {
            let after = u64::from(effect.after());
            after > skipped && after <= executed
        }) {
            let at = self.at + u64::from(effect.after()) - skipped;
            match effect {
                // Calls within a program are part of it.
                Effect::Call(_) | Effect::Return(_) if block.is_program() => {}
                Effect::Call(_) => self.depth += 1,
                Effect::Return(_) => self.rise(1),
                Effect::Leave(_) => {
                    self.rise(0);
                    self.changes.note(effect, at, function);
                }
                _ => {
                    let function = self.culprit(function);
                    self.changes.note(effect, at, function);
                }
            }
        }
        self.at += length * times;
    }

    pub(super) fn path(self, unseen: Nanos) -> Path {
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
            depth: u32::try_from(raw.depth - lowest).unwrap_or(DEEPEST).min(DEEPEST),
        };
        let held = self.changes.sections(self.at).into_iter().map(|section| DisabledSection {
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

    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
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

    /// Notes that a program runs, so that no kernel function is on the stack. The depth of tasks
    /// that were switched to is unknown: depths start at 0 again, and depths before the first
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
}

/// Whether this is an entry into the kernel by an interrupt, an exception or a system call, which
/// runs with interrupts disabled (`arch/x86/entry/entry_64.S`).
fn enters(place: Location<'_>) -> bool {
    let name = place.function;
    // The stubs of all device vectors have one name.
    name.ends_with("_entries_start")
        || place.offset == 0 && (name.starts_with("asm_") || name == "entry_SYSCALL_64")
}
