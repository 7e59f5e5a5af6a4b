//! Why a wake-up was late: what the CPU did from when the task should have run until it ran.
//!
//! A [`Window`] is one late wake-up and what was seen meanwhile. [`stretches`](stretch::stretches)
//! cuts its time where anything changed, so that within a [`Stretch`](stretch::Stretch) the CPU did
//! one thing. Each stretch is charged to one cause or to none, so that charges never overlap, and
//! with what is left they are the latency exactly ([`charge`]).

#[cfg(test)]
mod any;
pub mod charge;
pub mod evidence;
pub mod names;
pub mod pairing;
mod stolen;
pub mod stretch;
pub mod summary;
pub mod threshold;

use crate::time::Nanos;
use std::fmt;

/// A task, as it was when an event saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The kernel's number of the thread; 0 is a CPU's idle task.
    pub pid: u32,
    /// The kernel's own priority, inheritance included: -1 for deadline, 0 (real-time priority 99)
    /// to 98 (1), 100 to 139 for ordinary tasks, 120 being those without niceness.
    pub prio: i16,
    /// Its name.
    pub comm: Comm,
}

/// A task's name: what the kernel keeps of it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Comm(pub [u8; 16]);

/// Something that happened on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, on `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// Who was current.
    pub task: Task,
    /// What.
    pub what: What,
    /// What the hypervisor took of the CPU since the event before, at least; nothing where it does
    /// not say so exactly.
    pub stolen: Nanos,
}

/// What can happen. Each is a tracepoint of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The CPU goes over from the current task to another (`sched:sched_switch`).
    Switch {
        /// To whom.
        next: Task,
        /// Whether the current task could have gone on.
        preempted: bool,
    },
    /// The current task, or an interrupt on top of it, wakes a task (`sched:sched_waking`).
    Waking {
        /// Whom.
        task: Task,
        /// The CPU it last ran on.
        cpu: u32,
    },
    /// A task was put on this CPU's queue (`sched:sched_wakeup`).
    Queued {
        /// Which.
        pid: u32,
        /// The CPU whose queue it is.
        cpu: u32,
    },
    /// A task goes to another CPU (`sched:sched_migrate_task`).
    Migrated {
        /// Which.
        pid: u32,
        /// Where to.
        cpu: u32,
    },
    /// An interrupt handler begins (`irq:irq_handler_entry`, `irq_vectors:*_entry`).
    Interrupt {
        /// Which.
        line: Line,
        /// What it came upon.
        upon: Upon,
    },
    /// It ends.
    InterruptEnd,
    /// A softirq begins (`irq:softirq_entry`).
    Softirq(u8),
    /// It ends.
    SoftirqEnd,
    /// The callback of a high-resolution timer begins (`timer:hrtimer_expire_entry`).
    Timer {
        /// Its address.
        function: u64,
        /// When it was due, with the slack it was given.
        due: Nanos,
    },
    /// It ends.
    TimerEnd,
    /// The callback of an ordinary timer begins (`timer:timer_expire_entry`).
    Callback {
        /// Its address.
        function: u64,
    },
    /// It ends.
    CallbackEnd,
    /// The CPU goes idle (`power:cpu_idle`).
    Idle {
        /// The idle state; 0 is the shallowest.
        state: u32,
    },
    /// It is back.
    IdleEnd,
    /// The current task touched memory that was not there (`exceptions:page_fault_user`).
    PageFault {
        /// Where.
        address: u64,
    },
}

/// An interrupt by its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Line {
    /// The timer of the CPU.
    Timer,
    /// A device, by the kernel's number of its interrupt, as in /proc/interrupts.
    Device(u32),
    /// Another CPU asks this one to look whom to run.
    Reschedule,
    /// Another CPU has this one call a function.
    Call,
}

/// What an interrupt came upon, where the kernel could be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upon {
    /// The address of the next instruction; 0 if unknown.
    pub ip: u64,
    /// Whether that is a program's; else the kernel's.
    pub user: bool,
}

/// One wake-up, from when the task should have run until it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Who woke up.
    pub task: Task,
    /// On which CPU it then ran.
    pub cpu: u32,
    /// When it should have run: the moment it asked for, or the waking where it asked for none.
    pub due: Nanos,
    /// When its timer was due, with its slack; `due` where no timer woke it.
    pub expiry: Nanos,
    /// When it was woken; 0 if the kernel did not report it.
    pub waking: Nanos,
    /// Who was current on the CPU that woke it.
    pub waker: Task,
    /// That CPU.
    pub waker_cpu: u32,
    /// When the CPU switched to it; 0 if the kernel did not report it.
    pub switched: Nanos,
    /// Whether either was not reported, and stands for when it ran.
    pub unreported: bool,
    /// When it gave the CPU away again.
    pub out: Nanos,
    /// When it ran: the probe's own reading, or `switched`.
    pub ran: Nanos,
    /// What happened on `cpu`, in order of time, from before `due` if it could be had.
    pub events: Vec<Event>,
    /// What happened on `waker_cpu` until the waking, where that is another.
    pub elsewhere: Vec<Event>,
    /// The kernel functions that were called when it was woken, the innermost first: the handler,
    /// and below it what was interrupted.
    pub waking_stack: Vec<u64>,
    /// Those of the task that ran instead, when it gave way.
    pub switch_stack: Vec<u64>,
    /// What the hypervisor took meanwhile, at least, where that is counted at ticks only: what it
    /// may have taken before is left out.
    pub stolen: Nanos,
    /// Whether events are missing.
    pub torn: bool,
}

impl Window {
    /// Whether the kernel reported when it was woken and when the CPU switched to it.
    pub fn is_reported(&self) -> bool {
        self.waking > Nanos(0) && self.switched > Nanos(0)
    }

    /// The latency to be explained.
    pub fn latency(&self) -> Nanos {
        self.ran - self.due
    }
}

impl Upon {
    /// Whether it is known to be the kernel.
    pub fn is_kernel(&self) -> bool {
        self.ip != 0 && !self.user
    }
}

impl Task {
    /// Whether this is a CPU's idle task.
    pub fn is_idle(&self) -> bool {
        self.pid == 0
    }

    /// Whether it is scheduled before ordinary tasks.
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
