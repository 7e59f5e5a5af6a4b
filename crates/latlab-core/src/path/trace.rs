//! Traces of the QEMU plugin (`plugin/README.md`): blocks of instructions in execution order.

use crate::time::Nanos;
use std::collections::HashMap;

/// The trace of one sample: the instructions before it, up to its reading of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The index of the sample in the run.
    pub index: u64,
    /// The latency of the sample, as it was given to the plugin.
    pub latency: Nanos,
    /// The difference between instructions and time so far, where they should be the same.
    pub apart: u64,
    pub(super) blocks: HashMap<u64, Block>,
    runs: Vec<Run>,
}

/// The first word of lines that belong to no sample.
pub(super) const MISSES: &str = "misses";

/// A part of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// A block that ran one or several times in a row.
    Block {
        /// The name of the block in the trace.
        block: u64,
        /// Number of its instructions that lie before the path.
        skipped: u64,
        /// Number of its instructions that were executed, the skipped ones included.
        executed: u64,
        /// Number of times it ran.
        times: u64,
    },
    /// Idle time in nanoseconds.
    Idle(u64),
}

/// A sequence of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) effects: Vec<Effect>,
}

/// The effect of an instruction, with the number of instructions of its block up to and including
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Calls a function.
    Call(u32),
    /// Returns from a function.
    Return(u32),
    /// Returns from an interrupt or to a program.
    Leave(u32),
    /// Disables interrupts.
    Off(u32),
    /// Enables interrupts.
    On(u32),
    /// Restores the flags from before interrupts were disabled.
    Restore(u32),
    /// Adds the second number to the preemption counter.
    Preempt(u32, i64),
}

/// A text that is not a trace of the plugin.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line} of the plugin's trace is invalid: '{text}'")]
pub struct DamagedTrace {
    /// The line number, from 1.
    pub(crate) line: usize,
    /// The line.
    pub(crate) text: String,
}

impl Block {
    /// Whether it belongs to a program: the upper half of all addresses is the kernel's.
    pub(super) fn is_program(&self) -> bool {
        self.address >> 63 == 0
    }
}

impl Effect {
    /// Returns the number of instructions of the block up to and including this one.
    pub fn after(&self) -> u32 {
        match *self {
            Effect::Call(after)
            | Effect::Return(after)
            | Effect::Leave(after)
            | Effect::Off(after)
            | Effect::On(after)
            | Effect::Restore(after)
            | Effect::Preempt(after, _) => after,
        }
    }

    fn read(word: &str) -> Option<Effect> {
        let kind = word.find(|letter: char| !letter.is_ascii_digit())?;
        let (after, rest) = (word[..kind].parse().ok()?, &word[kind..]);
        Some(match rest {
            "c" => Effect::Call(after),
            "r" => Effect::Return(after),
            "l" => Effect::Leave(after),
            "d" => Effect::Off(after),
            "e" => Effect::On(after),
            "p" => Effect::Restore(after),
            // An instruction adds a number of 32 bits.
            _ => Effect::Preempt(after, rest.strip_prefix('n')?.parse::<i32>().ok()?.into()),
        })
    }
}

impl Run {
    /// Returns its length in instructions, which is also its time in nanoseconds.
    pub fn length(&self) -> u64 {
        match self {
            Run::Block { skipped, executed, times, .. } => (executed - skipped) * times,
            Run::Idle(ns) => *ns,
        }
    }
}

impl Trace {
    /// Reads the traces of all samples from a file of the plugin.
    pub fn read(text: &str) -> Result<Vec<Trace>, DamagedTrace> {
        let mut all = Vec::new();
        let mut current = None;
        for (number, text) in text.lines().enumerate() {
            let damaged = || DamagedTrace { line: number + 1, text: text.to_owned() };
            let (key, rest) = text.split_once(' ').unwrap_or((text, ""));
            if key == MISSES {
                continue;
            }
            if key == "sample" {
                current = Some(Trace::begin(rest).ok_or_else(damaged)?);
            } else if key == "end" {
                all.push(current.take().ok_or_else(damaged)?);
            } else {
                let trace = current.as_mut().ok_or_else(damaged)?;
                trace.line(key, rest).ok_or_else(damaged)?;
            }
        }
        Ok(all)
    }

    fn begin(rest: &str) -> Option<Trace> {
        let [index, latency, apart] = numbers(rest)?;
        let (blocks, runs) = (HashMap::new(), Vec::new());
        Some(Trace { index, latency: Nanos(latency), apart, blocks, runs })
    }

    fn line(&mut self, key: &str, rest: &str) -> Option<()> {
        match key {
            "block" => {
                let mut words = rest.split(' ');
                let name = address(words.next()?)?;
                let address = address(words.next()?)?;
                let effects = words.skip(1).map(Effect::read).collect::<Option<Vec<_>>>()?;
                effects.is_sorted_by_key(Effect::after).then_some(())?;
                self.blocks.insert(name, Block { address, effects });
            }
            "run" => {
                let (name, rest) = rest.split_once(' ')?;
                let block = address(name)?;
                let [executed, times] = numbers(rest)?;
                self.blocks.contains_key(&block).then_some(())?;
                executed.checked_mul(times)?;
                self.runs.push(Run::Block { block, skipped: 0, executed, times });
            }
            "idle" => {
                let [ns] = numbers(rest)?;
                self.runs.push(Run::Idle(ns));
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the last runs with this total length, or all runs where they are shorter.
    pub(super) fn last(&self, length: u64) -> Vec<Run> {
        let mut left = length;
        let mut runs = Vec::new();
        for run in self.runs.iter().rev() {
            if left == 0 {
                break;
            }
            if run.length() <= left {
                runs.push(*run);
                left -= run.length();
                continue;
            }
            match *run {
                Run::Idle(_) => runs.push(Run::Idle(left)),
                Run::Block { block, executed, .. } => {
                    let (whole, rest) = (left / executed, left % executed);
                    let run = |skipped, times| Run::Block { block, skipped, executed, times };
                    runs.extend((whole > 0).then(|| run(0, whole)));
                    runs.extend((rest > 0).then(|| run(executed - rest, 1)));
                }
            }
            left = 0;
        }
        runs.reverse();
        runs
    }
}

fn address(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

/// Parses a text of exactly `N` numbers.
fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let numbers: Option<Vec<u64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}
