//! Scheduling attributes of threads: policy, priority, timer slack.

use latlab_core::mechanism;
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

/// `SCHED_RESET_ON_FORK` may be added to a policy where it is one number.
const RESET_ON_FORK: u32 = 0x4000_0000;
/// The calling thread.
const OURS: i32 = 0;

/// Gives the calling thread a policy. It goes through the raw system call: musl refuses its own.
pub fn set_policy(policy: Policy) -> io::Result<()> {
    set_policy_of(OURS, policy)
}

/// Gives a thread a policy. What it has besides, its nice value above all, stays.
pub(crate) fn set_policy_of(thread_id: i32, policy: Policy) -> io::Result<()> {
    let now = attributes(thread_id)?;
    let mut attr = SchedAttr { flags: now.flags, ..SchedAttr::default() };
    match policy {
        Policy::Other => (attr.policy, attr.nice) = (OTHER, nice(thread_id)?),
        // The kernel keeps the nice value of who has no use for it.
        Policy::Fifo(priority) => (attr.policy, attr.priority) = (FIFO, priority),
        Policy::Rr(priority) => (attr.policy, attr.priority) = (RR, priority),
        Policy::Deadline { runtime, period } => {
            attr.policy = DEADLINE;
            (attr.runtime, attr.deadline, attr.period) = (runtime.0, period.0, period.0);
        }
    }
    set_attributes(thread_id, attr)
}

/// The real-time priority of a thread, [`mechanism::DEADLINE`] for the policy of that name; none
/// for an ordinary one, and for one that is not there.
pub(crate) fn realtime_priority(thread_id: i32) -> Option<u32> {
    let attr = attributes(thread_id).ok()?;
    match attr.policy {
        FIFO | RR => Some(attr.priority),
        DEADLINE => Some(mechanism::DEADLINE),
        _ => None,
    }
}

/// Makes the calling thread an ordinary one that all others go before: `SCHED_OTHER`, nice 19.
pub fn stand_back() -> io::Result<()> {
    set_attributes(OURS, SchedAttr { policy: OTHER, nice: 19, ..SchedAttr::default() })
}

/// Makes the calling thread an ordinary one that gets more of the CPU than most others:
/// `SCHED_OTHER`, nice -10. That needs `CAP_SYS_NICE`.
pub fn step_forward() -> io::Result<()> {
    set_attributes(OURS, SchedAttr { policy: OTHER, nice: -10, ..SchedAttr::default() })
}

fn set_attributes(thread_id: i32, attr: SchedAttr) -> io::Result<()> {
    let attr = SchedAttr { size: SIZE, ..attr };
    // SAFETY: `attr` is a valid sched_attr of the size it states.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, thread_id, &raw const attr, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks for a priority that there is not, for the calling thread: the kernel refuses, and nothing
/// changes, but whoever hears of such calls hears of this one.
pub(crate) fn ask_in_vain() {
    let _ = set_attributes(OURS, SchedAttr { priority: u32::MAX, ..SchedAttr::default() });
}

/// Makes a thread an ordinary task. One that is gone is no harm.
pub fn make_ordinary(thread_id: i32) {
    let _ = set_attributes(thread_id, SchedAttr { policy: OTHER, ..SchedAttr::default() });
}

/// The attributes that a thread really has.
fn attributes(thread_id: i32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: `attr` has room for the 48 bytes announced.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_getattr, thread_id, &raw mut attr, SIZE, 0) };
    attr.policy &= !RESET_ON_FORK;
    if answer == 0 { Ok(attr) } else { Err(io::Error::last_os_error()) }
}

/// The nice value of a thread, which a real-time one has as well, for later: its attributes do not
/// say then.
fn nice(thread_id: i32) -> io::Result<i32> {
    // SAFETY: no pointers. The raw system call answers with 20 less the value, so that it is not
    // taken for an error.
    let answer = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, thread_id) };
    i32::try_from(answer)
        .ok()
        .filter(|answer| *answer > 0)
        .map_or_else(|| Err(io::Error::last_os_error()), |answer| Ok(20 - answer))
}

/// The policy that the calling thread really has.
pub fn policy() -> io::Result<Policy> {
    let attr = attributes(OURS)?;
    Ok(match attr.policy {
        FIFO => Policy::Fifo(attr.priority),
        RR => Policy::Rr(attr.priority),
        DEADLINE => Policy::Deadline { runtime: Nanos(attr.runtime), period: Nanos(attr.period) },
        _ => Policy::Other,
    })
}

/// The policy of a thread as mechanisms know it; none for one that has another, or is not there.
pub(crate) fn policy_of(thread_id: i32) -> Option<mechanism::Policy> {
    let attr = attributes(thread_id).ok()?;
    match attr.policy {
        OTHER => Some(mechanism::Policy::Other),
        FIFO => Some(mechanism::Policy::Fifo(attr.priority)),
        RR => Some(mechanism::Policy::Rr(attr.priority)),
        _ => None,
    }
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
            assert_eq!(attributes(OURS).unwrap().nice, 19);
        })
        .join()
        .unwrap();
    }

    /// Whether this test may give a real-time policy.
    fn may(policy: Policy) -> bool {
        set_policy(policy).is_ok()
    }

    #[test]
    fn another_thread_is_turned_and_keeps_its_nice_value() {
        let (told, id) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            let nice = SchedAttr { policy: OTHER, nice: 7, ..SchedAttr::default() };
            set_attributes(OURS, nice).unwrap();
            told.send(thread_id()).unwrap();
            let _ = ended.recv();
        });
        let id = id.recv().unwrap();
        assert_eq!(policy_of(id), Some(mechanism::Policy::Other));
        if set_policy_of(id, Policy::Rr(3)).is_ok() {
            assert_eq!(policy_of(id), Some(mechanism::Policy::Rr(3)));
            assert_eq!(realtime_priority(id), Some(3));
            set_policy_of(id, Policy::Other).unwrap();
        }
        assert_eq!(attributes(id).unwrap().nice, 7);
        assert_eq!(realtime_priority(id), None);
        drop(end);
        other.join().unwrap();
    }

    #[test]
    fn the_kernel_s_own_threads_can_be_asked() {
        // The one that stops CPUs has a policy of its own.
        assert!(policy_of(2).is_some() || attributes(2).is_err());
        assert_eq!(policy_of(-1), None);
    }

    #[test]
    fn a_deadline_goes_before_every_priority() {
        std::thread::spawn(|| {
            let (runtime, period) = (Nanos::from_millis(1), Nanos::from_millis(100));
            if may(Policy::Deadline { runtime, period }) {
                assert_eq!(realtime_priority(thread_id()), Some(mechanism::DEADLINE));
                assert_eq!(policy_of(thread_id()), None, "no mechanism turns that");
            }
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
