//! What the plugin writes down (`plugin/README.md`): blocks, and how they followed each other.

use crate::time::Nanos;
use std::collections::HashMap;

/// What was executed before one sample, up to its reading of the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The sample's number.
    pub nth: u64,
    /// Its latency, as the plugin was told.
    pub latency: Nanos,
    /// How far instructions and time were apart so far where they should not be.
    pub apart: u64,
    pub(super) blocks: HashMap<u64, Block>,
    runs: Vec<Run>,
}

/// A part of what was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// A block, several times in a row.
    Block {
        /// Which.
        block: u64,
        /// How many of its instructions lie before what is looked at.
        skipped: u64,
        /// How many of its instructions were executed, the skipped ones included.
        executed: u64,
        /// How often.
        times: u64,
    },
    /// Nothing, for so many nanoseconds.
    Idle(u64),
}

/// Instructions that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) events: Vec<Event>,
}

/// What an instruction of a block does, and how many of the block are through then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It calls.
    Call(u32),
    /// It returns.
    Return(u32),
    /// It goes back from an interrupt or to a program.
    Leave(u32),
    /// It turns interrupts off.
    Off(u32),
    /// It turns interrupts on.
    On(u32),
    /// It takes the flags from memory, as they were before interrupts were turned off.
    Restore(u32),
    /// It adds so much to the counter that keeps preemption off.
    Preempt(u32, i64),
}

/// Why a text is not what the plugin writes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the plugin's line {line} is not one: '{text}'")]
pub struct DamagedTrace {
    /// Which line, from 1.
    line: usize,
    /// What it says.
    text: String,
}

impl Block {
    /// Whether it is of a program, not of the kernel: the upper half of all addresses is its.
    pub(super) fn is_program(&self) -> bool {
        self.address >> 63 == 0
    }
}

impl Event {
    /// How many instructions of the block are through then.
    pub fn after(&self) -> u32 {
        match *self {
            Event::Call(after)
            | Event::Return(after)
            | Event::Leave(after)
            | Event::Off(after)
            | Event::On(after)
            | Event::Restore(after)
            | Event::Preempt(after, _) => after,
        }
    }

    fn read(word: &str) -> Option<Event> {
        let kind = word.find(|letter: char| !letter.is_ascii_digit())?;
        let (after, rest) = (word[..kind].parse().ok()?, &word[kind..]);
        Some(match rest {
            "c" => Event::Call(after),
            "r" => Event::Return(after),
            "l" => Event::Leave(after),
            "d" => Event::Off(after),
            "e" => Event::On(after),
            "p" => Event::Restore(after),
            _ => Event::Preempt(after, rest.strip_prefix('n')?.parse().ok()?),
        })
    }
}

impl Run {
    /// How long it took, in instructions or, which is the same, nanoseconds.
    pub fn length(&self) -> u64 {
        match self {
            Run::Block { skipped, executed, times, .. } => (executed - skipped) * times,
            Run::Idle(ns) => *ns,
        }
    }
}

impl Watched {
    /// Reads all that the plugin has written, sample by sample.
    pub fn read(text: &str) -> Result<Vec<Watched>, DamagedTrace> {
        let mut all = Vec::new();
        let mut now = None;
        for (nth, text) in text.lines().enumerate() {
            let damaged = || DamagedTrace { line: nth + 1, text: text.to_owned() };
            let (key, rest) = text.split_once(' ').unwrap_or((text, ""));
            if key == "sample" {
                now = Some(Watched::begin(rest).ok_or_else(damaged)?);
            } else if key == "end" {
                all.push(now.take().ok_or_else(damaged)?);
            } else {
                let watched = now.as_mut().ok_or_else(damaged)?;
                watched.line(key, rest).ok_or_else(damaged)?;
            }
        }
        Ok(all)
    }

    fn begin(rest: &str) -> Option<Watched> {
        let [nth, latency, apart] = numbers(rest)?;
        let (blocks, runs) = (HashMap::new(), Vec::new());
        Some(Watched { nth, latency: Nanos(latency), apart, blocks, runs })
    }

    fn line(&mut self, key: &str, rest: &str) -> Option<()> {
        match key {
            "block" => {
                let mut words = rest.split(' ');
                let name = address(words.next()?)?;
                let address = address(words.next()?)?;
                let events = words.skip(1).map(Event::read).collect::<Option<Vec<_>>>()?;
                self.blocks.insert(name, Block { address, events });
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

    /// The last runs that together are so long; less where there is less.
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

/// As many numbers as are wanted, and nothing else.
fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let numbers: Option<Vec<u64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}
