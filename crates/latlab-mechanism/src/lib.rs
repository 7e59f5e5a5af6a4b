//! Mechanisms of the adaptive daemon (Seo, Jeong, Park, Kim, Lee 2009, section 3).
//!
//! They decide, from observations alone, which knobs are set and when.
#![forbid(unsafe_code)]

mod adaptation;
pub mod configuration;
mod decision;
pub mod demote;
mod history;
pub mod inherit;
mod knobs;
pub mod log;
pub mod mode;
mod needs;
mod observation;
mod policy;
pub mod protocol;
pub mod selective;
pub mod status;
pub mod suppress;
#[cfg(test)]
mod tests;
mod threads;
pub mod transparent;
pub mod violations;
pub mod watchdog;

pub use adaptation::Adaptation;
pub use decision::Decision;
pub use observation::{DEADLINE, Knob, Observation, RealTimeTask, Request, Thread, Wake};
pub use policy::Policy;

use serde::{Deserialize, Serialize};

/// One way to adapt a machine. A mechanism declares what it may change and decides from
/// observations; it never changes anything itself.
pub trait Mechanism: Send {
    /// Returns its knobs and its part in scheduling threads; the same at each call.
    fn description(&self) -> Description;

    /// Returns the value that one of its own knobs should have, or why the knob stays as it is, as
    /// the end of a sentence.
    fn wish(&self, _knob: &Knob) -> Result<Wish, &'static str> {
        Err("this mechanism does not set it")
    }

    /// Notes an observation, and returns the conclusions from all observations so far.
    fn assess(&mut self, _seen: &Observation) -> Assessment {
        Assessment::default()
    }
}

/// The knobs of a mechanism, and its part in scheduling threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name, as users write it.
    pub name: &'static str,
    /// The knobs that it alone may set. The knob that takes longest to set comes first, because
    /// knobs are restored in reverse order.
    pub knobs: &'static [&'static str],
    /// The mode that its knobs serve. Knobs for throughput are also set if no mechanism decides the
    /// mode. Knobs for latency alone are no reason to adapt a machine.
    pub serves: Mode,
    /// Whether it decides the mode, from the number of real-time tasks.
    pub decides_mode: bool,
    /// Its part in scheduling the threads that handle interrupts.
    pub threads: ThreadRole,
    /// The priority that it gives such a thread while real-time tasks need it.
    pub priority: Priority,
}

/// The part of a mechanism in scheduling the threads that handle interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRole {
    /// Nothing.
    None,
    /// It finds out which of them real-time tasks need, from the requests of processes.
    FindsByRequests,
    /// It finds out which of them real-time tasks need, from their wake-ups.
    FindsByWakes,
    /// It raises those that other mechanisms find.
    Raises,
    /// It demotes those that other mechanisms do not find.
    Demotes,
}

/// The priority that a mechanism gives a thread while real-time tasks need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// None: it leaves that to other mechanisms.
    Unchanged,
    /// The highest among the tasks that, as it found out itself, need the thread; limited.
    OfOwnNeeds {
        /// The limit.
        at_most: u32,
    },
    /// The highest among all tasks that need the thread, whichever mechanism found out.
    OfAllNeeds,
}

/// The conclusions of a mechanism from all its observations so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assessment {
    /// The mode it decides for, and why, as the end of a sentence.
    pub mode: Option<(Mode, String)>,
    /// The threads that real-time tasks need, as far as this mechanism finds out.
    pub needs: Vec<Need>,
    /// Why IRQ threads that no real-time task needs become `SCHED_OTHER`, as the end of a
    /// sentence; none if they do not.
    pub demotes: Option<&'static str>,
}

/// The optimization goal of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Throughput of `SCHED_OTHER` tasks: every wish that serves it is fulfilled.
    Throughput,
    /// Latency of real-time tasks: every wish that serves it is fulfilled, and all other knobs are
    /// restored, except those that are known not to delay real-time tasks.
    Latency,
}

/// The value that a mechanism wants a knob to have, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The value.
    pub value: String,
    /// The purpose, as the end of a sentence.
    pub because: &'static str,
}

/// A real-time task that needs a thread which handles interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The thread id of the handler.
    pub thread: i32,
    /// The thread id of the task.
    pub task: i32,
    /// The process id of the task.
    pub process: i32,
    /// The task's priority, as in [`RealTimeTask`].
    pub priority: u32,
    /// How that is known, as the end of a sentence.
    pub because: String,
}

impl Description {
    /// Returns the description of a mechanism that changes nothing.
    pub const fn new(name: &'static str) -> Description {
        Description {
            name,
            knobs: &[],
            serves: Mode::Throughput,
            decides_mode: false,
            threads: ThreadRole::None,
            priority: Priority::Unchanged,
        }
    }
}

impl ThreadRole {
    /// Whether it finds out which threads real-time tasks need.
    pub(crate) fn finds(self) -> bool {
        matches!(self, ThreadRole::FindsByRequests | ThreadRole::FindsByWakes)
    }

    /// Its action on threads, if it has no effect unless another mechanism finds the threads that
    /// real-time tasks need.
    pub(crate) fn depends(self) -> Option<&'static str> {
        match self {
            ThreadRole::Raises => Some("only raises threads that another mechanism finds"),
            ThreadRole::Demotes => {
                Some("only demotes threads that another mechanism does not find")
            }
            _ => None,
        }
    }
}

impl Priority {
    /// The priority for a needed thread. `own` is the highest priority of the tasks that need it
    /// and that this mechanism found, `all` of those that any mechanism found.
    pub(crate) fn choose(self, own: Option<u32>, all: u32) -> Option<u32> {
        match self {
            Priority::Unchanged => None,
            Priority::OfOwnNeeds { at_most } => own.map(|highest| highest.min(at_most)),
            Priority::OfAllNeeds => Some(all),
        }
    }
}
