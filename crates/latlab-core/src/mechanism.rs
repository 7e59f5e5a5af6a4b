//! Mechanisms of the adaptive daemon: which knobs are to be turned, and when, decided by nothing
//! but what was observed (Seo, Jeong, Park, Kim, Lee 2009, section 3).

mod adaptation;
pub mod asking;
pub mod configuration;
mod decision;
pub mod inherit;
pub mod log;
pub mod mode;
mod needs;
mod newest;
mod observation;
mod policy;
pub mod selective;
pub mod status;
pub mod suppress;
#[cfg(test)]
mod tests;
mod threads;
pub mod transparent;
pub mod watchdog;
pub mod watching;

pub use adaptation::Adaptation;
pub use decision::Decision;
pub use observation::{DEADLINE, Knob, Observation, RealTimeTask, Thread};
pub use policy::Policy;

use serde::{Deserialize, Serialize};

/// What a process has asked for. It stands until the process ends or takes it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The process, by its number.
    pub process: i32,
    /// The device groups that it needs, by the names that the configuration gives them.
    pub groups: Vec<String>,
}

/// A real-time task of a program was woken by a thread in which the kernel handles interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Wake {
    /// The task, by its thread's number in the machine's first pid namespace, as all here.
    pub task: i32,
    /// The process that it belongs to.
    pub process: i32,
    /// The thread that woke it: an interrupt's, or one that runs softirqs.
    pub thread: i32,
    /// The interrupt's thread that had raised the softirq, where one that runs softirqs woke the
    /// task; none where it is not known, or where a hard interrupt had.
    pub behind: Option<i32>,
}

/// What the machine is to be good at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Ordinary tasks get much done: every wish for that is fulfilled.
    Throughput,
    /// Whoever is woken runs at once: every wish for that is fulfilled, and every other knob is as
    /// it was found, but for what is known to spare real-time tasks.
    Latency,
}

/// What a mechanism would have a knob be, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The value.
    pub value: String,
    /// What it is good for, as the end of a sentence.
    pub because: &'static str,
}

/// A real-time task needs a thread that handles interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The thread's number.
    pub thread: i32,
    /// The task's priority, as in [`RealTimeTask`].
    pub priority: u32,
    /// How that is known, as the end of a sentence.
    pub because: String,
}

/// One way to adapt a machine. It observes and wishes; it never acts.
pub trait Mechanism: Send {
    /// What the user calls it.
    fn name(&self) -> &'static str;

    /// The knobs that are its own, the one that takes longest to turn first: it is given back last.
    /// No other mechanism may have a wish for them.
    fn knobs(&self) -> &'static [&'static str] {
        &[]
    }

    /// What the machine is good at with its knobs turned. Those for throughput are turned where no
    /// mechanism decides the mode, too; those for latency are no reason to adapt a machine.
    fn turns_for(&self) -> Mode {
        Mode::Throughput
    }

    /// What this knob of its own should be, standing as it does among all that may be turned, in
    /// that mode; or why it is to stay, as the end of a sentence.
    fn wish(&self, _knob: &Knob, _all: &[Knob]) -> Result<Wish, &'static str> {
        Err("nothing is wished of it")
    }

    /// Whether it decides the mode, from the number of real-time tasks.
    fn decides_mode(&self) -> bool {
        false
    }

    /// The mode it decides for, and why, as the end of a sentence.
    fn mode(&mut self, _seen: &Observation) -> Option<(Mode, String)> {
        None
    }

    /// How it is with interrupt threads.
    fn part(&self) -> Part {
        Part::None
    }

    /// The threads that real-time tasks need, as far as it finds out, by what was seen up to now.
    fn needs(&mut self, _seen: &Observation) -> Vec<Need> {
        Vec::new()
    }

    /// Whether it has noted this wake-up already, so that it need not be shown again.
    fn knows(&self, _wake: &Wake) -> bool {
        false
    }

    /// The priority that a needed thread should have at least, if any. Of the tasks that need it,
    /// `own` is the highest priority among those that this mechanism knows, `any` among all.
    fn priority(&self, _own: Option<u32>, _any: u32) -> Option<u32> {
        None
    }

    /// Why interrupt threads that no real-time task needs are to be ordinary tasks now, if they
    /// are, as the end of a sentence.
    fn demotes(&self) -> Option<&'static str> {
        None
    }
}

/// What a mechanism has to do with interrupt threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nothing.
    None,
    /// It finds out who needs them, from what processes ask for.
    Asked,
    /// It finds out who needs them, from who wakes whom.
    Wakes,
    /// It decides how they are scheduled, once another has found out.
    Follows,
}
