//! Sources: they can take the CPU from a thread that is to run.

use crate::cause::Cause;
use crate::explain::charge::Culprit;
use crate::explain::{Call, Comm, Line, Task};
use std::cmp::Ordering;

/// What took the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An interrupt, with the function that another CPU asked for.
    Interrupt(Line, Option<Call>),
    /// A softirq, by its number.
    Softirq(u8),
    /// A task of higher priority.
    Higher(Task),
    /// A task of the same priority, or any other one of `SCHED_OTHER` beside such a thread.
    Equal(Task),
    /// The thread was runnable, and a task of lower priority or none had its CPU.
    Throttled,
    /// The hypervisor, as it says itself.
    Host,
    /// The CPU had to leave an idle state first.
    Idle,
    /// The ways into the kernel and out of it, and the switch to the thread after it was woken.
    Dispatch,
    /// Nothing that was recorded: from one reading of the clock to the next, without an event.
    Nothing,
}

/// One occurrence of a source: its kind, and its number on the CPU. Of each kind one is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Interrupt(u64),
    Softirq(u64),
    Task(u64),
}

/// The key by which times of sources are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    cpu: u32,
    cause: &'static str,
    line: Option<Line>,
    /// The function, and the CPU that asked for it.
    call: Option<(u64, u32)>,
    softirq: Option<u8>,
    task: Option<Comm>,
}

/// The cause of time in which nothing was recorded.
pub const NOTHING: &str = "no event";

impl Source {
    /// An interrupt, and the function within it that another CPU asked for.
    pub(super) fn interrupt(line: Line, called: Option<Call>) -> Source {
        Source::Interrupt(line, called.filter(|_| line == Line::Call))
    }

    /// The source where another task than the thread has the CPU. `is_fresh`: the thread was woken,
    /// and its CPU has not switched since.
    pub(super) fn instead(task: Task, thread: Task, is_fresh: bool) -> Source {
        let order = match task.prio.cmp(&thread.prio) {
            _ if task.is_idle() && is_fresh => return Source::Idle,
            _ if task.is_idle() => Ordering::Greater,
            // Ordinary tasks take turns.
            _ if !thread.is_realtime() && !task.is_realtime() => Ordering::Equal,
            order => order,
        };
        match order {
            Ordering::Less => Source::Higher(task),
            Ordering::Equal => Source::Equal(task),
            Ordering::Greater if is_fresh => Source::Dispatch,
            Ordering::Greater => Source::Throttled,
        }
    }

    /// The name of the cause, as in the list of causes.
    pub fn cause(self) -> &'static str {
        match self {
            Source::Interrupt(..) => Cause::Interrupt.name(),
            Source::Softirq(_) => Cause::Softirq.name(),
            Source::Higher(_) => Cause::HigherPriority.name(),
            Source::Equal(_) => Cause::EqualPriority.name(),
            Source::Throttled => Cause::Throttled.name(),
            Source::Host => Cause::Host.name(),
            Source::Idle => Cause::IdleExit.name(),
            Source::Dispatch => Cause::Dispatch.name(),
            Source::Nothing => NOTHING,
        }
    }

    /// The culprit.
    pub fn culprit(self) -> Culprit {
        match self {
            Source::Interrupt(line, call) => Culprit {
                line: Some(line),
                sender: call.map(|call| (call.sender, call.cpu)),
                stack: call.map(|call| call.function).into_iter().collect(),
                ..Culprit::default()
            },
            Source::Softirq(number) => Culprit { softirq: Some(number), ..Culprit::default() },
            Source::Higher(task) | Source::Equal(task) => {
                Culprit { task: Some(task), ..Culprit::default() }
            }
            Source::Throttled
            | Source::Host
            | Source::Idle
            | Source::Dispatch
            | Source::Nothing => Culprit::default(),
        }
    }

    pub(super) fn key(self, cpu: u32) -> Key {
        let mut key =
            Key { cpu, cause: self.cause(), line: None, call: None, softirq: None, task: None };
        match self {
            Source::Interrupt(line, call) => {
                key.line = Some(line);
                key.call = call.map(|call| (call.function, call.cpu));
                key.task = call.map(|call| call.sender.comm);
            }
            Source::Softirq(number) => key.softirq = Some(number),
            Source::Higher(task) | Source::Equal(task) => key.task = Some(task.comm),
            _ => {}
        }
        key
    }
}

impl Key {
    pub(super) fn cpu(&self) -> u32 {
        self.cpu
    }
}
