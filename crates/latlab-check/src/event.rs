//! Events of threads of user space.

use super::breach::Held;
use super::lock::Lock;
use super::request::Request;
use latlab_core::explain::Comm;
use latlab_core::time::Nanos;

/// Priority, in the kernel's numbers, from which on tasks are not real-time.
pub(super) const ORDINARY: i16 = 100;

/// Index of a user stack in the table of its reader.
pub type StackId = u32;

/// A thread at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// ID of the thread.
    pub tid: u32,
    /// ID of its process.
    pub pid: u32,
    /// The kernel's priority: -1 for `SCHED_DEADLINE`, 0 to 98 for real-time priorities 99 to 1, from 100 on
    /// for nice values.
    pub prio: i16,
    /// Number of the scheduling policy, as in `sched_setscheduler(2)`.
    pub policy: u8,
    /// Its name.
    pub comm: Comm,
}

impl Thread {
    /// Whether it has a real-time or deadline policy.
    pub fn is_realtime(&self) -> bool {
        self.prio < ORDINARY
    }

    /// Whether a task of that priority has to wait for it. Without a real-time policy there is no such
    /// task: the scheduler gives each its share.
    pub(super) fn is_above(&self, prio: i16) -> bool {
        self.is_realtime() && prio > self.prio
    }

    /// Its policy and priority, such as `SCHED_FIFO 80`.
    pub(super) fn policy_in_words(&self) -> String {
        match self.policy {
            1 => format!("SCHED_FIFO {}", 99 - self.prio),
            2 => format!("SCHED_RR {}", 99 - self.prio),
            3 => "SCHED_BATCH".to_owned(),
            5 => "SCHED_IDLE".to_owned(),
            7 => "SCHED_EXT".to_owned(),
            _ => priority(self.prio),
        }
    }
}

/// A priority of the kernel in the user's numbers.
pub(super) fn priority(prio: i16) -> String {
    match prio {
        ..0 => "SCHED_DEADLINE".to_owned(),
        0..100 => format!("priority {}", 99 - prio),
        _ => "SCHED_OTHER".to_owned(),
    }
}

/// An event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time, on `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// The thread.
    pub thread: Thread,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It begins a system call.
    Enter {
        /// Name of the system call.
        call: &'static str,
        /// Arguments. Of `rt_sigreturn`, which has none, the first is the address whose access ended in the
        /// signal that was handled; 0 if none did.
        arguments: [u64; 6],
        /// Time in the arguments of `nanosleep`, `clock_nanosleep` and of a `futex` that waits. Of a call
        /// that receives from a socket, the time-out of the socket in ticks, 0 if it has none.
        time: Nanos,
        /// The file in the first argument, if that is one.
        file: Option<File>,
        /// The lock that a `futex` waits for.
        lock: Lock,
        /// Memory locks of the process.
        locks: Locks,
        /// Stack of the call; none if it could not be read.
        stack: Option<StackId>,
    },
    /// The system call returns.
    Leave {
        /// What it returns.
        result: i64,
        /// Its name; none if the kernel no longer knows it, as after `sigreturn`.
        call: Option<&'static str>,
    },
    /// A page fault begins.
    Fault {
        /// Address that was accessed.
        address: u64,
        /// Stack pointer at the fault.
        stack_pointer: u64,
        /// Whether the page is there, but may not be written (copy on write).
        protection: bool,
        /// Whether the kernel accessed the memory during a system call.
        in_kernel: bool,
        /// Stack of the access.
        stack: Option<StackId>,
    },
    /// The page fault has been handled.
    Faulted {
        /// Whether the page was read from a disk.
        major: bool,
    },
    /// It is woken.
    Waking {
        /// ID of the task that was running on the waking CPU.
        waker: u32,
        /// The kernel's priority of that task.
        prio: i16,
        /// Name of that task.
        comm: Comm,
        /// Where that happened.
        context: WakeContext,
    },
    /// It leaves the CPU.
    Out {
        /// Why it leaves.
        reason: OutReason,
        /// The next task.
        next: u32,
        /// The kernel's priority of the next task.
        prio: i16,
        /// Name of the next task.
        comm: Comm,
        /// Whether the next task is a kernel thread.
        kernel: bool,
    },
    /// It gets the CPU.
    In,
    /// It is moved to another CPU.
    Migrate,
    /// A part of its cycle begins, by a mark of the program.
    Begin {
        /// Name of the part.
        name: String,
        /// The number that the program gave it.
        id: i64,
    },
    /// A part of its cycle ends, by a mark of the program.
    End {
        /// Name of the part.
        name: String,
    },
    /// It has asked for a real-time policy or for locked memory.
    Request(Request),
    /// Its process has mapped code of a file.
    Mapped,
    /// It starts another process.
    Fork,
    /// It executes another program.
    Exec,
    /// It exits.
    Exit {
        /// Whether no thread of its process is alive; of threads that end at once, any may say so.
        last: bool,
    },
}

/// Why a task leaves the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutReason {
    /// It sleeps until something happens, or until a signal.
    Sleeps,
    /// It sleeps in the kernel, as for a page of a disk.
    SleepsInKernel,
    /// It is runnable, and another task has replaced it.
    Preempted,
    /// It waits for a spinlock of a `PREEMPT_RT` kernel, which inherits priority.
    KernelLock,
    /// Something from outside stops it.
    Stopped(Stopper),
}

/// What stops a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopper {
    /// A signal, such as `SIGSTOP`, that this task sent; ID 0 if that is not known.
    Signal(u32, Comm),
    /// A debugger, or another task that traces it.
    Tracer(u32, Comm),
    /// The freezer of a control group, or a suspend of the machine.
    Freezer,
}

impl Stopper {
    /// Who stops it.
    pub(super) fn describe(self) -> String {
        match self {
            Stopper::Signal(0, _) => "a signal".to_owned(),
            Stopper::Signal(pid, comm) => format!("{comm} [{pid}]"),
            Stopper::Tracer(pid, comm) => format!("{comm} [{pid}], which traces it"),
            Stopper::Freezer => "the freezer".to_owned(),
        }
    }
}

impl OutReason {
    /// Whether the task sleeps, or is stopped.
    pub(super) fn is_sleep(self) -> bool {
        matches!(self, OutReason::Sleeps | OutReason::SleepsInKernel | OutReason::Stopped(_))
    }
}

/// Where a task was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeContext {
    /// This kernel does not say.
    Unknown,
    /// In an interrupt, or a thread that handles one.
    Interrupt,
    /// In another task.
    Task,
    /// In the owner of a lock with priority inheritance.
    Lock,
}

/// Memory locks of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locks {
    /// Whether memory mapped from now on is locked (`MCL_FUTURE`).
    pub future: bool,
    /// Whether any memory is locked.
    pub any: bool,
}

/// An open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its kind.
    pub kind: FileKind,
    /// Last part of its path, at most 15 bytes.
    pub name: String,
    /// The process at the other end of a terminal or a connection, if it is known.
    pub peer: Option<Held>,
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file or folder on a file system.
    Regular,
    /// A terminal.
    Terminal,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Another character or block device.
    Device,
    /// A timer of `timerfd_create(2)` on the clock of this number.
    Timer(u32),
    /// Another object of the kernel with a file descriptor, such as an eventfd.
    Object,
}
