//! Scheduling attributes of threads: policy, priority, nice value, timer slack.

use latlab_core::time::Nanos;
use latlab_mechanism as mechanism;
use rustix::process::{Pid, getpriority_process, setpriority_process};
use std::io;
use std::marker::PhantomData;
use std::num::NonZeroU64;

/// A scheduling policy with its parameters (`sched(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`; the nice value stays as it is, since only root may lower it.
    Other,
    /// `SCHED_FIFO` at this priority, 1 to 99.
    Fifo(u32),
    /// `SCHED_RR` at this priority, 1 to 99.
    Rr(u32),
    /// `SCHED_DEADLINE`: `runtime` of CPU time in every `period`; the deadline is the end of the
    /// period.
    Deadline {
        /// CPU time per period.
        runtime: Nanos,
        /// The period, which is also the relative deadline.
        period: Nanos,
    },
}

/// `struct sched_attr` of `linux/sched/types.h` in its first version, which all kernels since 3.14
/// know.
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

/// The bit `SCHED_RESET_ON_FORK` of a policy.
const RESET_ON_FORK: u32 = 0x4000_0000;
/// The calling thread.
const OURS: i32 = 0;

/// Sets the policy of the calling thread.
pub fn set_policy(policy: Policy) -> io::Result<()> {
    set_policy_of(OURS, policy)
}

/// Sets the policy of a thread. Its nice value and its flags stay.
pub(crate) fn set_policy_of(thread_id: i32, policy: Policy) -> io::Result<()> {
    let now = attributes(thread_id)?;
    let mut attr = SchedAttr { flags: now.flags, ..SchedAttr::default() };
    match policy {
        Policy::Other => (attr.policy, attr.nice) = (OTHER, nice(thread_id)?),
        // The kernel keeps the nice value of a real-time thread.
        Policy::Fifo(priority) => (attr.policy, attr.priority) = (FIFO, priority),
        Policy::Rr(priority) => (attr.policy, attr.priority) = (RR, priority),
        Policy::Deadline { runtime, period } => {
            attr.policy = DEADLINE;
            (attr.runtime, attr.deadline, attr.period) = (runtime.0, period.0, period.0);
        }
    }
    set_attributes(thread_id, attr)
}

/// The real-time priority of a thread, [`mechanism::DEADLINE`] for `SCHED_DEADLINE`. None for a
/// `SCHED_OTHER` thread, and for one that has ended.
pub(crate) fn realtime_priority(thread_id: i32) -> io::Result<Option<u32>> {
    let attr = match attributes(thread_id) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        attr => attr?,
    };
    Ok(match attr.policy {
        FIFO | RR => Some(attr.priority),
        DEADLINE => Some(mechanism::DEADLINE),
        _ => None,
    })
}

/// Makes the calling thread `SCHED_OTHER` with this nice value: -20, the largest share of a CPU, to
/// 19. A lower value than before needs `CAP_SYS_NICE`.
pub fn set_nice(nice: i32) -> io::Result<()> {
    set_attributes(OURS, SchedAttr { policy: OTHER, nice, ..SchedAttr::default() })
}

/// The largest share of the CPU that a `SCHED_OTHER` thread can have: nice -20. The calling thread
/// has it until this is dropped, for work that must not wait behind many running tasks. Without
/// `CAP_SYS_NICE` nothing changes.
#[derive(Debug)]
#[must_use]
pub struct LargestShare {
    /// The nice value of before, where it was changed.
    before: Option<i32>,
    /// It belongs to one thread.
    _thread: PhantomData<*const ()>,
}

impl LargestShare {
    /// Gives it to the calling thread.
    pub fn take() -> LargestShare {
        let change = |before| setpriority_process(None, -20).is_ok().then_some(before);
        let before = getpriority_process(None).ok().and_then(change);
        LargestShare { before, _thread: PhantomData }
    }
}

impl Drop for LargestShare {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = setpriority_process(None, before);
        }
    }
}

fn set_attributes(thread_id: i32, attr: SchedAttr) -> io::Result<()> {
    let attr = SchedAttr { size: SIZE, ..attr };
    // SAFETY: `attr` is a valid sched_attr of the size it states.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, thread_id, &raw const attr, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks for a priority that does not exist, for the calling thread. The kernel refuses and changes
/// nothing, but a probe of this call sees it.
pub(crate) fn make_failing_call() {
    let _ = set_attributes(OURS, SchedAttr { priority: u32::MAX, ..SchedAttr::default() });
}

/// Gives a thread `SCHED_OTHER` and nice 0. A thread that has ended is ignored.
pub fn make_ordinary(thread_id: i32) {
    let _ = set_attributes(thread_id, SchedAttr { policy: OTHER, ..SchedAttr::default() });
}

/// The attributes of a thread, as the kernel has them.
fn attributes(thread_id: i32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: `attr` has room for the 48 bytes announced.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_getattr, thread_id, &raw mut attr, SIZE, 0) };
    attr.policy &= !RESET_ON_FORK;
    if answer == 0 { Ok(attr) } else { Err(io::Error::last_os_error()) }
}

/// The nice value of a thread. A real-time thread has one too, which its attributes do not show.
fn nice(thread_id: i32) -> io::Result<i32> {
    Ok(getpriority_process(Pid::from_raw(thread_id))?)
}

/// The policy of the calling thread, as the kernel has it.
pub fn policy() -> io::Result<Policy> {
    let attr = attributes(OURS)?;
    Ok(match attr.policy {
        FIFO => Policy::Fifo(attr.priority),
        RR => Policy::Rr(attr.priority),
        DEADLINE => Policy::Deadline { runtime: Nanos(attr.runtime), period: Nanos(attr.period) },
        _ => Policy::Other,
    })
}

/// The policy of a thread; none where it is not one that mechanisms set.
pub(crate) fn policy_of(thread_id: i32) -> io::Result<Option<mechanism::Policy>> {
    let attr = attributes(thread_id)?;
    Ok(match attr.policy {
        OTHER => Some(mechanism::Policy::Other),
        FIFO => Some(mechanism::Policy::Fifo(attr.priority)),
        RR => Some(mechanism::Policy::Rr(attr.priority)),
        _ => None,
    })
}

/// Whether there is a thread with this id.
pub(crate) fn exists(thread_id: i32) -> io::Result<bool> {
    match attributes(thread_id) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The timer slack of the calling thread: the time by which the kernel may delay its timers. It
/// does not apply to real-time threads (`PR_SET_TIMERSLACK(2const)`).
pub fn slack() -> io::Result<Nanos> {
    // prctl() of the C library, and of rustix, returns an int, which ends at 2.1 s.
    // SAFETY: this prctl takes no pointers.
    let answer = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(answer).map(Nanos).map_err(|_| io::Error::last_os_error())
}

/// Sets the timer slack of the calling thread, at least 1 ns: 0 would be the default.
pub fn set_slack(slack: Nanos) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(slack.0.max(1)))?)
}

/// The thread id of the calling thread (`gettid(2)`).
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{may_set_realtime, not_run};

    #[test]
    fn sched_slack_is_read_back() {
        std::thread::spawn(|| {
            set_slack(Nanos(12_345)).unwrap();
            assert_eq!(slack().unwrap(), Nanos(12_345));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn sched_thread_becomes_other_with_nice_19() {
        std::thread::spawn(|| {
            set_nice(19).unwrap();
            assert_eq!(policy().unwrap(), Policy::Other);
            assert_eq!(attributes(OURS).unwrap().nice, 19);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn sched_largest_share_ends_when_it_is_dropped() {
        let own = || nice(OURS).unwrap();
        std::thread::spawn(move || {
            let is_allowed = setpriority_process(None, -20).is_ok();
            setpriority_process(None, 3).unwrap();
            let share = LargestShare::take();
            assert_eq!(own(), if is_allowed { -20 } else { 3 });
            drop(share);
            assert_eq!(own(), 3);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn sched_policy_of_another_thread_is_set_and_its_nice_value_kept() {
        const TEST: &str = "sched_policy_of_another_thread_is_set_and_its_nice_value_kept";
        let (sender, id) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            let nice = SchedAttr { policy: OTHER, nice: 7, ..SchedAttr::default() };
            set_attributes(OURS, nice).unwrap();
            sender.send(thread_id()).unwrap();
            let _ = ended.recv();
        });
        let id = id.recv().unwrap();
        assert_eq!(policy_of(id).unwrap(), Some(mechanism::Policy::Other));
        if may_set_realtime(TEST) {
            set_policy_of(id, Policy::Rr(3)).unwrap();
            assert_eq!(policy_of(id).unwrap(), Some(mechanism::Policy::Rr(3)));
            assert_eq!(realtime_priority(id).unwrap(), Some(3));
            set_policy_of(id, Policy::Other).unwrap();
        }
        assert_eq!(attributes(id).unwrap().nice, 7);
        assert_eq!(realtime_priority(id).unwrap(), None);
        drop(end);
        other.join().unwrap();
    }

    #[test]
    fn sched_policy_of_kernel_threads_is_read() {
        // Thread 2 is kthreadd, except in a container.
        assert!(policy_of(2).is_ok_and(|policy| policy.is_some()) || attributes(2).is_err());
        assert!(policy_of(-1).is_err());
    }

    #[test]
    fn sched_deadline_counts_as_the_highest_priority() {
        std::thread::spawn(|| {
            let (runtime, period) = (Nanos::from_millis(1), Nanos::from_millis(100));
            if let Err(e) = set_policy(Policy::Deadline { runtime, period }) {
                let why = format!("SCHED_DEADLINE can't be set: {e}");
                return not_run("sched_deadline_counts_as_the_highest_priority", &why);
            }
            assert_eq!(realtime_priority(thread_id()).unwrap(), Some(mechanism::DEADLINE));
            assert_eq!(policy_of(thread_id()).unwrap(), None, "no mechanism sets it");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn sched_policy_of_a_new_thread_is_other() {
        assert_eq!(policy().unwrap(), Policy::Other);
        set_policy(Policy::Other).unwrap();
    }
}
