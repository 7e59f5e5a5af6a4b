//! What is seen of a machine: plain data, so that it can be kept and decided upon again.

use super::policy::Policy;
use super::{Request, Wake};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// What is seen of the machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// When, by a clock that only goes on.
    pub at: Nanos,
    /// Programs' tasks of real-time policy, kernel threads not among them. None where nobody has
    /// looked.
    pub realtime: Option<Vec<RealTimeTask>>,
    /// The knobs that can be read.
    pub knobs: Vec<Knob>,
    /// The threads that handle interrupts.
    pub threads: Vec<Thread>,
    /// Which of them have woken real-time tasks since the last observation.
    pub wakes: Vec<Wake>,
    /// What processes ask for.
    pub requests: Vec<Request>,
    /// CPUs on which ordinary tasks starve.
    #[serde(default)]
    pub starved: Vec<u32>,
}

/// A knob as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knob {
    /// Its name, as `latlab list knobs` shows it.
    pub name: String,
    /// Where it is, as the user finds it.
    pub path: String,
    /// The value it has.
    pub value: String,
    /// All values it can have; empty where that is not known.
    pub possible: Vec<String>,
}

/// A program's task of real-time policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealTimeTask {
    /// The kernel's number of it, a thread id.
    pub id: i32,
    /// The process it belongs to.
    pub process: i32,
    /// What it is called.
    pub name: String,
    /// Its priority, 1 to 99; [`DEADLINE`] for one of `SCHED_DEADLINE`, which goes before all
    /// others.
    pub priority: u32,
}

/// The priority that counts for a task of `SCHED_DEADLINE`.
pub const DEADLINE: u32 = 100;

/// A kernel thread that handles interrupts, `irq/…`, or the rest of their work: `ksoftirqd/…`,
/// and under `PREEMPT_RT` `ktimers/…`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The kernel's number of it.
    pub id: i32,
    /// What it is called: with its number, this says who it is.
    pub name: String,
    /// The interrupt it handles; none for a soft-irq thread.
    pub interrupt: Option<u32>,
    /// What the interrupt's handler is registered as. Several where the thread's own can't be told
    /// from others that share the interrupt.
    pub actions: Vec<String>,
    /// The driver of the device that interrupts, where sysfs says.
    pub driver: Option<String>,
    /// How it is scheduled.
    pub policy: Policy,
}

impl Observation {
    /// How many real-time tasks of programs there are; none where nobody has looked.
    pub fn tasks(&self) -> Option<u64> {
        self.realtime.as_ref().map(|tasks| tasks.len() as u64)
    }
}

impl Thread {
    /// Where its policy is, as the user finds it.
    pub fn path(&self) -> String {
        format!("/proc/{}", self.id)
    }
}
