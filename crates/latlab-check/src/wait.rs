//! Waits: the sleeps by which a cycle is found.

use super::event::{EventKind, File, FileKind};
use latlab_core::time::Nanos;

/// What a thread waits for, in a system call that may be the wait of its cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// The end of its period (`sched_yield` with `SCHED_DEADLINE`).
    Period,
    /// A time: `nanosleep` or `clock_nanosleep`.
    Time {
        /// Whether the time is absolute.
        absolute: bool,
        /// Whether the clock is `CLOCK_REALTIME`.
        wall: bool,
    },
    /// A timer with a file descriptor.
    Timer {
        /// The file descriptor.
        descriptor: u64,
        /// Whether its clock is `CLOCK_REALTIME`.
        wall: bool,
    },
    /// A signal, as of a timer of `timer_create(2)`.
    Signal,
    /// One of several files.
    Poll,
    /// One file.
    Read {
        /// The file descriptor.
        descriptor: u64,
    },
    /// A futex, as of a condition variable or a semaphore.
    Futex,
}

/// `SCHED_DEADLINE`.
pub(super) const DEADLINE: u8 = 6;
/// `CLOCK_REALTIME`.
const REALTIME: u64 = 0;
/// `FUTEX_WAIT` and `FUTEX_WAIT_BITSET`.
const FUTEX_WAITS: [u64; 2] = [0, 9];
/// `FUTEX_CLOCK_REALTIME`.
pub(super) const CLOCK_REALTIME_FLAG: u64 = 256;
/// The commands of `futex(2)`, without its flags.
pub(super) const FUTEX_COMMAND: u64 = 0x7f;

impl Wait {
    /// What the system call at its start waits for, if it can be the wait of a cycle.
    pub(super) fn of(kind: &EventKind, policy: u8) -> Option<Wait> {
        let EventKind::Enter { call, arguments, file, lock, .. } = kind else { return None };
        let absolute = arguments[1] & 1 == 1;
        Some(match *call {
            "sched_yield" if policy == DEADLINE => Wait::Period,
            "nanosleep" => Wait::Time { absolute: false, wall: false },
            "clock_nanosleep" => {
                Wait::Time { absolute, wall: absolute && arguments[0] == REALTIME }
            }
            "rt_sigtimedwait" | "pause" | "rt_sigsuspend" => Wait::Signal,
            call if is_poll(call) => Wait::Poll,
            "read" | "readv" | "recvfrom" | "recvmsg" | "recvmmsg" | "ioctl" => {
                Wait::of_file(arguments[0], file.as_ref()?)?
            }
            "futex" if is_wait(arguments) && !is_mutex(arguments) && lock.read_write.is_none() => {
                Wait::Futex
            }
            _ => return None,
        })
    }

    fn of_file(descriptor: u64, file: &File) -> Option<Wait> {
        match file.kind {
            FileKind::Timer(clock) => {
                Some(Wait::Timer { descriptor, wall: u64::from(clock) == REALTIME })
            }
            FileKind::Regular | FileKind::Terminal => None,
            _ => Some(Wait::Read { descriptor }),
        }
    }

    /// Order in which waits are chosen as the wait of the cycle: a timer before anything else.
    pub(super) fn rank(self) -> u8 {
        match self {
            Wait::Period | Wait::Time { .. } | Wait::Timer { .. } | Wait::Signal => 0,
            Wait::Poll => 1,
            Wait::Read { .. } => 2,
            Wait::Futex => 3,
        }
    }

    /// Whether the call is a wait even if the thread does not sleep in it, as where the time that it
    /// waits for is over. A call on a file may be no wait at all: after `epoll_wait`, reading a timer
    /// never sleeps.
    pub(super) fn counts_without_sleep(self) -> bool {
        self.rank() == 0 && !self.is_of_file()
    }

    /// Whether it is one of any number of waits, each for another file.
    pub(super) fn is_of_file(self) -> bool {
        matches!(self, Wait::Timer { .. } | Wait::Read { .. })
    }

    /// Whether it is known when its cycles are due. A thread of `SCHED_DEADLINE` is runnable all
    /// the time: no event marks the start of its next period.
    pub(super) fn tells_due(self) -> bool {
        self != Wait::Period
    }

    /// Whether the wait is on the wall clock.
    pub(super) fn is_on_wall_clock(self) -> bool {
        matches!(self, Wait::Time { wall: true, .. } | Wait::Timer { wall: true, .. })
    }

    /// How the user knows the wait.
    pub fn words(self) -> &'static str {
        match self {
            Wait::Period => "the end of its period (sched_yield)",
            Wait::Time { absolute: true, wall: false } => "a time (clock_nanosleep)",
            Wait::Time { absolute: true, wall: true } => {
                "a time on CLOCK_REALTIME (clock_nanosleep)"
            }
            Wait::Time { .. } => "a relative time (nanosleep)",
            Wait::Timer { wall: false, .. } => "a timer (timerfd)",
            Wait::Timer { .. } => "a timer on CLOCK_REALTIME (timerfd)",
            Wait::Signal => "a signal",
            Wait::Poll => "one of several files (poll)",
            Wait::Read { .. } => "a file (read)",
            Wait::Futex => "a futex (condition variable or semaphore)",
        }
    }
}

/// Whether a call of `futex(2)` with these arguments waits, without a lock that inherits priority.
pub(super) fn is_wait(arguments: &[u64; 6]) -> bool {
    FUTEX_WAITS.contains(&(arguments[1] & FUTEX_COMMAND))
}

/// Whether a `futex(2)` that waits is a mutex. In glibc and in Rust the word of a contended mutex is
/// 2; in musl it has the highest bit.
pub(super) fn is_mutex(arguments: &[u64; 6]) -> bool {
    let word = arguments[2] & u64::from(u32::MAX);
    is_wait(arguments) && (word == 2 || word >> 31 == 1)
}

/// Whether a system call waits for any of several files.
pub(super) fn is_poll(call: &str) -> bool {
    let all = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];
    all.contains(&call)
}

/// Whether a `futex(2)` with these arguments waits for a lock that inherits priority, which is bounded by its
/// owner.
pub(super) fn inherits(arguments: &[u64; 6]) -> bool {
    /// `FUTEX_LOCK_PI` and `FUTEX_LOCK_PI2`.
    const LOCKS: [u64; 2] = [6, 13];
    LOCKS.contains(&(arguments[1] & FUTEX_COMMAND))
}

/// The time at which a wait for a time is due, on `CLOCK_MONOTONIC`. None if it is on another clock.
pub(super) fn due(wait: Wait, at: Nanos, kind: &EventKind) -> Option<Nanos> {
    /// `CLOCK_MONOTONIC`.
    const MONOTONIC: u64 = 1;
    let EventKind::Enter { arguments, time, .. } = kind else { return None };
    match wait {
        Wait::Time { absolute: true, .. } => (arguments[0] == MONOTONIC).then_some(*time),
        Wait::Time { absolute: false, .. } => Some(at + *time),
        _ => None,
    }
}

/// Whether a call waits until a time on `CLOCK_REALTIME`.
pub(super) fn is_on_wall_clock(kind: &EventKind) -> bool {
    match kind {
        EventKind::Enter { call: "clock_nanosleep", arguments, .. } => {
            arguments[0] == REALTIME && arguments[1] & 1 == 1
        }
        EventKind::Enter { call: "futex", arguments, .. } => {
            is_wait(arguments) && arguments[1] & CLOCK_REALTIME_FLAG != 0 && arguments[3] != 0
        }
        _ => false,
    }
}
