//! Scheduling attributes of the calling thread: policy, priority, timer slack.

use latlab_core::time::Nanos;
use std::io;

/// A scheduling policy with what belongs to it (`sched(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`; the nice value stays, for only root may lower it.
    Other,
    /// `SCHED_FIFO` at this priority, 1 to 99.
    Fifo(u32),
    /// `SCHED_RR` at this priority, 1 to 99.
    Rr(u32),
    /// `SCHED_DEADLINE`: `runtime` of CPU time in every `period`, due at its end.
    Deadline {
        /// CPU time per period.
        runtime: Nanos,
        /// The period, and the deadline.
        period: Nanos,
    },
}

/// `struct sched_attr` of `linux/sched/types.h`, as far as every kernel since 3.14 knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = 48;
const OTHER: u32 = 0;
const FIFO: u32 = 1;
const RR: u32 = 2;
const DEADLINE: u32 = 6;

/// Gives the calling thread a policy. It goes through the raw system call: musl refuses its own.
pub fn set_policy(policy: Policy) -> io::Result<()> {
    let mut attr = SchedAttr::default();
    match policy {
        Policy::Other => (attr.policy, attr.nice) = (OTHER, attributes()?.nice),
        Policy::Fifo(priority) => (attr.policy, attr.priority) = (FIFO, priority),
        Policy::Rr(priority) => (attr.policy, attr.priority) = (RR, priority),
        Policy::Deadline { runtime, period } => {
            attr.policy = DEADLINE;
            (attr.runtime, attr.deadline, attr.period) = (runtime.0, period.0, period.0);
        }
    }
    set_attributes(attr)
}

/// Whether a thread has a real-time policy; one that is not there has none.
pub(crate) fn is_realtime(thread_id: i32) -> bool {
    /// `SCHED_RESET_ON_FORK` may be added to a policy.
    const RESET_ON_FORK: u32 = 0x4000_0000;
    // SAFETY: no pointers. The raw system call: musl refuses its own.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread_id) };
    u32::try_from(policy)
        .is_ok_and(|policy| [FIFO, RR, DEADLINE].contains(&(policy & !RESET_ON_FORK)))
}

/// Makes the calling thread an ordinary one that all others go before: `SCHED_OTHER`, nice 19.
pub fn stand_back() -> io::Result<()> {
    set_attributes(SchedAttr { policy: OTHER, nice: 19, ..SchedAttr::default() })
}

/// Makes the calling thread an ordinary one that gets more of the CPU than most others:
/// `SCHED_OTHER`, nice -10. That needs `CAP_SYS_NICE`.
pub fn step_forward() -> io::Result<()> {
    set_attributes(SchedAttr { policy: OTHER, nice: -10, ..SchedAttr::default() })
}

fn set_attributes(attr: SchedAttr) -> io::Result<()> {
    let attr = SchedAttr { size: SIZE, ..attr };
    // SAFETY: `attr` is a valid sched_attr of the size it states; pid 0 is the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a thread an ordinary task. One that is gone is no harm.
pub fn make_ordinary(thread_id: i32) {
    let attr = SchedAttr { size: SIZE, policy: OTHER, ..SchedAttr::default() };
    // SAFETY: `attr` is a valid sched_attr of the size it states.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread_id, &raw const attr, 0) };
}

/// The attributes that the calling thread really has.
fn attributes() -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: `attr` has room for the 48 bytes announced; pid 0 is the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, SIZE, 0) };
    if answer == 0 { Ok(attr) } else { Err(io::Error::last_os_error()) }
}

/// The policy that the calling thread really has.
pub fn policy() -> io::Result<Policy> {
    let attr = attributes()?;
    Ok(match attr.policy {
        FIFO => Policy::Fifo(attr.priority),
        RR => Policy::Rr(attr.priority),
        DEADLINE => Policy::Deadline { runtime: Nanos(attr.runtime), period: Nanos(attr.period) },
        _ => Policy::Other,
    })
}

/// How late the kernel may fire the calling thread's timers on purpose; real-time threads are
/// treated as if it were 0 (`PR_SET_TIMERSLACK(2const)`).
pub fn slack() -> io::Result<Nanos> {
    // The library's prctl() answers with an int, which ends at 2.1 s.
    // SAFETY: this prctl takes no pointers.
    let answer = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(answer).map(Nanos).map_err(|_| io::Error::last_os_error())
}

/// Sets the calling thread's timer slack; the kernel reads 0 as "the default", so 1 ns is least.
pub fn set_slack(slack: Nanos) -> io::Result<()> {
    // SAFETY: this prctl takes no pointers.
    crate::checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack.0.max(1)) }).map(drop)
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: gettid takes nothing and always succeeds.
    unsafe { libc::gettid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_read_back() {
        std::thread::spawn(|| {
            set_slack(Nanos(12_345)).unwrap();
            assert_eq!(slack().unwrap(), Nanos(12_345));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_stands_back() {
        std::thread::spawn(|| {
            stand_back().unwrap();
            assert_eq!(policy().unwrap(), Policy::Other);
            assert_eq!(attributes().unwrap().nice, 19);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_starts_as_an_ordinary_one() {
        assert_eq!(policy().unwrap(), Policy::Other);
        set_policy(Policy::Other).unwrap();
    }
}
