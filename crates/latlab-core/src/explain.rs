//! Explanations of late wake-ups from kernel events.
//!
//! A [`Window`] is one late wake-up with the events from when the task should have run until it
//! ran. [`segments`](segment::segments) cuts its time wherever the activity of the CPU changes.
//! Each segment is charged to one cause or to none ([`charge`]), so that charges never overlap, and
//! charges and unexplained time add up to the latency.

pub mod always;
#[cfg(test)]
mod any;
pub mod charge;
pub mod evidence;
pub mod history;
pub mod lock;
pub mod names;
pub mod pairing;
pub mod queue;
pub mod quota;
pub mod running;
pub mod segment;
mod stolen;
pub mod stop;
pub mod summary;
pub mod terms;
mod thread;
pub mod threshold;
pub mod verify;

use crate::time::Nanos;
use lock::LockWait;
use queue::Move;
use quota::Quota;
use std::fmt;
use stop::Stop;

/// A task at the time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Its thread id; 0 is the idle task of a CPU.
    pub pid: u32,
    /// Its priority inside the kernel, with inheritance: -1 for `SCHED_DEADLINE`, 0 (real-time
    /// priority 99) to 98 (1), 100 to 139 for `SCHED_OTHER` tasks, 120 at nice 0.
    pub prio: i16,
    /// Its name.
    pub comm: Comm,
}

/// The name of a task (`comm`), NUL-terminated.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Comm(pub [u8; 16]);

/// An event on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time, on `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// The current task.
    pub task: Task,
    /// The kind of event.
    pub kind: EventKind,
    /// Lower bound of the time stolen by the hypervisor since the event before; 0 where the
    /// hypervisor does not report it exactly.
    pub stolen: Nanos,
}

/// Kinds of events, one for each tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Context switch from the current task to another (`sched:sched_switch`).
    Switch {
        /// The next task.
        next: Task,
        /// Whether the current task was preempted: it was still runnable.
        preempted: bool,
    },
    /// The current task, or an interrupt on top of it, wakes a task (`sched:sched_waking`).
    Waking {
        /// The task that is woken.
        task: Task,
        /// The CPU the task last ran on.
        cpu: u32,
    },
    /// A woken task was put on a run queue (`sched:sched_wakeup`).
    Queued {
        /// The task.
        pid: u32,
        /// The CPU of the run queue.
        cpu: u32,
    },
    /// A control group and those below it have used up their CPU quota on this CPU.
    Throttled {
        /// The group, by the address of its `task_group`.
        group: u64,
    },
    /// The group has CPU time again.
    Unthrottled {
        /// The same.
        group: u64,
    },
    /// A watched task is migrated to another CPU (`sched:sched_migrate_task`).
    Migrated {
        /// The task.
        pid: u32,
        /// The destination.
        cpu: u32,
    },
    /// An interrupt handler begins (`irq:irq_handler_entry`, `irq_vectors:*_entry`).
    Interrupt {
        /// Its source.
        line: Line,
        /// The context it interrupted.
        context: InterruptedContext,
    },
    /// The interrupt handler ends.
    InterruptEnd,
    /// A softirq begins, by its number (`irq:softirq_entry`).
    Softirq(u8),
    /// The softirq ends.
    SoftirqEnd,
    /// The callback of a high-resolution timer begins (`timer:hrtimer_expire_entry`).
    Timer {
        /// The address of the callback.
        function: u64,
        /// When the timer was due, its slack included.
        due: Nanos,
    },
    /// The callback of a high-resolution timer ends. Where this is not reported, it ends with the
    /// next callback, interrupt or softirq end.
    TimerEnd,
    /// The callback of a timer-wheel timer begins (`timer:timer_expire_entry`).
    Callback {
        /// The address of the callback.
        function: u64,
    },
    /// The callback of a timer-wheel timer ends.
    CallbackEnd,
    /// The current task has had the CPU since then; the context switches before were not recorded.
    Current,
    /// A function begins that another CPU asked for (`csd:csd_function_entry`).
    Called(Call),
    /// The current task takes a page fault (`exceptions:page_fault_user`).
    PageFault {
        /// The faulting address.
        address: u64,
    },
    /// The current task begins to wait for a lock of the kernel (`lock:contention_begin`).
    LockWait(LockWait),
    /// Functions on the stack of the wait that has just begun, innermost first, after those of the
    /// event before; 0 where there are no more.
    Callers([u64; 5]),
    /// A watched task is woken from its wait for a lock.
    LockReleased {
        /// The task.
        pid: u32,
    },
    /// The wait ends (`lock:contention_end`).
    LockTaken,
}

/// The source of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Line {
    /// The local timer of the CPU.
    Timer,
    /// A device, by its interrupt number in /proc/interrupts.
    Device(u32),
    /// The reschedule interrupt from another CPU.
    Reschedule,
    /// The function-call interrupt from another CPU.
    Call,
    /// An interrupt that no event names, in the trace of another tool.
    Unknown,
}

/// A function that a CPU runs for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The address of the function.
    pub function: u64,
    /// The current task of the CPU that asked for it.
    pub sender: Task,
    /// The CPU that asked for it.
    pub cpu: u32,
}

/// The context that an interrupt interrupted, where the kernel's registers could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptedContext {
    /// The instruction pointer; 0 if unknown.
    pub ip: u64,
    /// Whether it was in user mode, else in kernel mode.
    pub user: bool,
}

/// One wake-up with its events, from when the task should have run until it ran.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the wake-up")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The task that woke up.
    pub task: Task,
    /// The CPU it then ran on.
    pub cpu: u32,
    /// When it should have run: the time it asked for, or the waking where it asked for none.
    pub due: Nanos,
    /// When its timer was due, slack included; `due` where no timer woke it.
    pub expiry: Nanos,
    /// When it was woken; 0 if the kernel did not report it.
    pub waking: Nanos,
    /// The current task of the CPU that woke it.
    pub waker: Task,
    /// The CPU that woke it.
    pub waker_cpu: u32,
    /// When its CPU switched to it; 0 if the kernel did not report it.
    pub switched: Nanos,
    /// Whether the waking or the switch was not reported and is replaced by when it ran.
    pub unreported: bool,
    /// When its CPU switched to another task again.
    pub out: Nanos,
    /// When it ran: the time that the probe read, or `switched`.
    pub ran: Nanos,
    /// Events on `cpu` in order of time, from before `due` where they were kept.
    pub events: Vec<Event>,
    /// Events on `waker_cpu`, where that is another CPU: until the waking, or until the last move.
    pub elsewhere: Vec<Event>,
    /// Its control group, as in events; 0 if unknown, and for real-time tasks.
    pub group: u64,
    /// The CPU quota of that group or of one above it, if it is known.
    pub quota: Option<Quota>,
    /// What stopped it until it was woken, if it was stopped.
    pub stop: Option<Stop>,
    /// Its moves between run queues after the waking, in order of time
    /// (`sched:sched_migrate_task`).
    pub moves: Vec<Move>,
    /// Whether it was moved before them, which is not known in detail.
    pub lacks_moves: bool,
    /// A CPU whose run queue had the task, if it is neither `cpu` nor `waker_cpu`.
    pub former_cpu: u32,
    /// Events on `former_cpu` until the last move.
    pub former: Vec<Event>,
    /// Kernel stack when it was woken, innermost function first: the handler, then the interrupted
    /// functions.
    pub waking_stack: Vec<u64>,
    /// Kernel stack of `switch_pid` when it was switched out, innermost function first.
    pub switch_stack: Vec<u64>,
    /// The task that had the CPU until the first switch after the waking.
    pub switch_pid: u32,
    /// Lower bound of the time stolen by the hypervisor, where that is counted at ticks only: time
    /// that may have been stolen before the window is left out.
    pub stolen: Nanos,
    /// Whether events are missing.
    pub torn: bool,
    /// Whether interrupts and softirqs may have run that no event shows, in the trace of another tool.
    pub lacks_interrupts: bool,
}

impl Window {
    /// Whether the kernel reported both the waking and the switch.
    pub fn is_reported(&self) -> bool {
        self.waking > Nanos(0) && self.switched > Nanos(0)
    }

    /// Returns the latency that is explained.
    pub fn latency(&self) -> Nanos {
        self.ran - self.due
    }
}

impl InterruptedContext {
    /// The kernel, at an instruction that is not known.
    pub const UNNAMED: InterruptedContext = InterruptedContext { ip: u64::MAX, user: false };

    /// Whether it is known to be in kernel mode.
    pub fn is_kernel(&self) -> bool {
        self.ip != 0 && !self.user
    }
}

impl Task {
    /// Whether this is the idle task of a CPU.
    pub fn is_idle(&self) -> bool {
        self.pid == 0
    }

    /// Whether it handles interrupts: an IRQ thread, or one that runs softirqs.
    pub fn is_interrupt_thread(&self) -> bool {
        let starts = |prefix: &&[u8]| self.comm.0.starts_with(prefix);
        [&b"irq/"[..], b"ksoftirqd/", b"ktimers/"].iter().any(starts)
    }

    /// Whether it has a real-time or deadline policy.
    pub fn is_realtime(&self) -> bool {
        self.prio < 100
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl From<&str> for Comm {
    /// Keeps fifteen bytes, as the kernel does.
    fn from(name: &str) -> Comm {
        let mut bytes = [0; 16];
        for (to, from) in bytes[..15].iter_mut().zip(name.bytes()) {
            *to = from;
        }
        Comm(bytes)
    }
}
