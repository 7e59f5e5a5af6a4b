//! Observations of a machine: plain data, so that they can be logged and decided on again.

use super::policy::Policy;
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};

/// The state of a machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// The moment, on a monotonic clock.
    pub at: Nanos,
    /// Tasks of programs with a real-time policy, without kernel threads; none where they are not
    /// counted.
    pub realtime: Option<Vec<RealTimeTask>>,
    /// The knobs that can be read.
    pub knobs: Vec<Knob>,
    /// The threads that handle interrupts.
    pub threads: Vec<Thread>,
    /// The ids and names of further such threads, with a policy that mechanisms give to no thread
    /// (`SCHED_DEADLINE`, `SCHED_IDLE`, …).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unusual: Vec<(i32, String)>,
    /// The wake-ups of real-time tasks by these threads since the last observation.
    pub wakes: Vec<Wake>,
    /// The requests of processes.
    pub requests: Vec<Request>,
    /// CPUs on which `SCHED_OTHER` tasks starve.
    #[serde(default)]
    pub starved: Vec<u32>,
}

/// A knob with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knob {
    /// Its name, as `latlab list knobs` shows it.
    pub name: String,
    /// The path of its file.
    pub path: String,
    /// Its value.
    pub value: String,
    /// All values it can have; empty where they are not known.
    pub possible: Vec<String>,
}

/// A program's task with a real-time policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealTimeTask {
    /// Its thread id.
    pub id: i32,
    /// The id of its process.
    pub process: i32,
    /// Its name.
    pub name: String,
    /// Its priority, 1 to 99; [`DEADLINE`] for `SCHED_DEADLINE`, which runs before all others.
    pub priority: u32,
}

/// The priority that stands for `SCHED_DEADLINE`.
pub const DEADLINE: u32 = 100;

/// A kernel thread that handles interrupts (`irq/…`) or the softirqs they raise (`ksoftirqd/…`, and
/// with `PREEMPT_RT` `ktimers/…`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its thread id.
    pub id: i32,
    /// Its name. Thread ids are reused; id and name together identify a thread.
    pub name: String,
    /// The interrupt it handles; none for a softirq thread.
    pub interrupt: Option<u32>,
    /// The names of the interrupt's handlers. There are several if the thread's own handler can't
    /// be distinguished from others that share the interrupt.
    pub actions: Vec<String>,
    /// The driver of the interrupting device, where sysfs names it.
    pub driver: Option<String>,
    /// Its scheduling policy.
    pub policy: Policy,
}

/// The wake-up of a program's real-time task by a thread that handles interrupts. All ids are those
/// of the initial pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Wake {
    /// The thread id of the task.
    pub task: i32,
    /// The id of its process.
    pub process: i32,
    /// The thread that woke it: an IRQ thread, or a thread that runs softirqs.
    pub thread: i32,
    /// The IRQ thread that had raised the softirq, where a softirq thread woke the task; none
    /// where it is not known, or where a hard interrupt had raised it.
    pub behind: Option<i32>,
}

/// The request of a process, or of one of its threads. It stands until the process ends or withdraws
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The process id.
    pub process: i32,
    /// The id of the thread that needs the groups; none where all threads of the process do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i32>,
    /// The device groups that it needs, by their names in the configuration.
    pub groups: Vec<String>,
}

impl Request {
    /// Whether it was made for this task.
    pub fn is_for(&self, task: &RealTimeTask) -> bool {
        task.process == self.process && self.thread.is_none_or(|thread| thread == task.id)
    }
}

impl Observation {
    /// Returns the number of real-time tasks of programs; none where they are not counted.
    pub fn tasks(&self) -> Option<u64> {
        self.realtime.as_ref().map(|tasks| tasks.len() as u64)
    }
}

impl Thread {
    /// Returns the path of its directory in /proc.
    pub fn path(&self) -> String {
        format!("/proc/{}", self.id)
    }
}
