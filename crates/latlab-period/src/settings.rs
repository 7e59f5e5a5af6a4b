//! What a loop asks of the kernel: policy, locked memory, a touched stack, and short idle states.

use core::ffi::{CStr, c_int};
use core::fmt;
use core::mem::MaybeUninit;
use core::time::Duration;

/// How a loop runs. [`Settings::every`] has the defaults.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Time from the start of one cycle to the start of the next: 10 us to 1 h.
    pub period: Duration,
    /// The name that `latlab watch` shows, at most 32 bytes; by default the thread's.
    pub name: Option<&'a str>,
    /// The scheduling policy of the calling thread.
    pub policy: Policy,
    /// What follows a cycle that ended after the next one was due.
    pub on_overrun: OnOverrun,
    /// Whether all memory of the process is locked, now and later (`mlockall(2)`).
    pub lock_memory: bool,
    /// Bytes of the thread's stack that are touched at the start, so that cycles take no page fault
    /// there.
    pub stack: usize,
    /// Limit on the exit latency of idle states while the loop exists. Zero keeps all CPUs out of
    /// idle states. Needs the right to write `/dev/cpu_dma_latency`.
    pub cpu_dma_latency: Option<Duration>,
    /// Longest time of each period that may be spent spinning. The thread then wakes early by the
    /// wake-up latency measured at the start (its 99th percentile), at most by this time and by half
    /// of the period, and spins until the cycle is due. Zero: it never spins.
    pub spin_at_most: Duration,
}

/// A scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The thread's present policy.
    Keep,
    /// `SCHED_FIFO` with this priority, 1 to 99.
    Fifo(u32),
    /// `SCHED_RR` with this priority, 1 to 99.
    RoundRobin(u32),
    /// `SCHED_DEADLINE` with this CPU time in each period.
    Deadline(Duration),
}

/// What follows a cycle that ended after the next one was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOverrun {
    /// The periods that have begun meanwhile are left out: the next cycle is on time.
    Skip,
    /// The cycles that are due follow at once, one after the other.
    CatchUp,
    /// The loop ends.
    Stop,
}

/// Why a loop can't start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    pub(crate) what: &'static CStr,
    pub(crate) number: i32,
}

impl Settings<'_> {
    /// A loop with this period: the thread's own policy, locked memory, 64 KiB of touched stack, no
    /// limit on idle states, no spinning; periods that have passed are skipped.
    pub const fn every(period: Duration) -> Settings<'static> {
        Settings {
            period,
            name: None,
            policy: Policy::Keep,
            on_overrun: OnOverrun::Skip,
            lock_memory: true,
            stack: 64 << 10,
            cpu_dma_latency: None,
            spin_at_most: Duration::ZERO,
        }
    }

    /// The period in nanoseconds.
    pub(crate) fn period_ns(&self) -> Result<u64, Refused> {
        const SHORTEST: Duration = Duration::from_micros(10);
        const LONGEST: Duration = Duration::from_hours(1);
        if self.period < SHORTEST || self.period > LONGEST {
            return Err(Refused { what: c"the period must be 10 us to 1 h", number: libc::EINVAL });
        }
        Ok(nanos(self.period))
    }
}

impl Refused {
    /// The refused request and the remedy, in a sentence without the kernel's reason.
    pub fn what(&self) -> &'static str {
        self.what.to_str().unwrap_or_default()
    }

    /// The error number of the kernel (`errno`).
    pub fn errno(&self) -> i32 {
        self.number
    }

    /// The failure of the last call.
    pub(crate) fn last(what: &'static CStr) -> Refused {
        // SAFETY: __errno_location takes nothing.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the C library gives each thread a valid place for its error number.
        Refused { what, number: unsafe { place.read() } }
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {})", self.what(), self.number)
    }
}

impl core::error::Error for Refused {}

/// A time in nanoseconds; 584 years at most.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Locks all pages of the process, those of later mappings too.
pub(crate) fn lock_memory() -> Result<(), Refused> {
    const WHAT: &CStr = c"memory can't be locked: raise RLIMIT_MEMLOCK (ulimit -l unlimited)";
    // SAFETY: mlockall takes no pointers.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(Refused::last(WHAT)),
    }
}

/// Touches this many bytes of the calling thread's stack.
pub(crate) fn touch_stack(bytes: usize) -> Result<(), Refused> {
    /// For the last page, and for functions that the kernel calls on the stack: signal handlers.
    const SPARE: usize = 16 << 10;
    if bytes > stack_left().saturating_sub(SPARE) {
        let what = c"the stack of the thread is smaller than what is to be touched of it";
        return Err(Refused { what, number: libc::ENOMEM });
    }
    touch_down_to((&raw const bytes).addr().saturating_sub(bytes));
    Ok(())
}

/// Writes to a page on its stack, then to the pages below, until one reaches this address. The
/// stack that a call needs besides its page depends on the compiler.
#[inline(never)]
fn touch_down_to(end: usize) {
    let mut page = [0_u8; 4096];
    if core::hint::black_box(&mut page).as_ptr().addr() > end {
        touch_down_to(end);
    }
    // Used after the call, so that the call is not made a loop on one page.
    core::hint::black_box(&mut page);
}

/// Bytes of the calling thread's stack below this function.
fn stack_left() -> usize {
    let (mut start, mut size) = (core::ptr::null_mut(), 0);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: pthread_self takes nothing.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: pthread_getattr_np initializes the attributes of the calling thread, or fails.
    if unsafe { libc::pthread_getattr_np(thread, attributes.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: the attributes are initialized, and both places are valid to write to.
    unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut size) };
    // SAFETY: the attributes are initialized, and used no more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (&raw const start).addr().saturating_sub(start.addr())
}

/// The attributes of `sched_setattr(2)`, first version, whose size is 48.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Sets the policy of the calling thread. `period` is the loop's period in nanoseconds.
pub(crate) fn set_policy(policy: Policy, period: u64) -> Result<(), Refused> {
    const WHAT: &CStr =
        c"the policy was refused: SCHED_FIFO, SCHED_RR and SCHED_DEADLINE need root, \
        CAP_SYS_NICE or, but for the last, RLIMIT_RTPRIO";
    /// A deadline task may start other tasks only if they become ordinary tasks.
    const RESET_ON_FORK: u64 = 1;
    let (policy, priority, runtime) = match policy {
        Policy::Keep => return Ok(()),
        Policy::Fifo(priority) => (libc::SCHED_FIFO, priority, 0),
        Policy::RoundRobin(priority) => (libc::SCHED_RR, priority, 0),
        Policy::Deadline(runtime) => (libc::SCHED_DEADLINE, 0, nanos(runtime)),
    };
    let (flags, period) = if runtime > 0 { (RESET_ON_FORK, period) } else { (0, 0) };
    let attributes = Attributes {
        size: 48,
        policy: policy.cast_unsigned(),
        flags,
        nice: 0,
        priority,
        runtime,
        deadline: period,
        period,
    };
    // SAFETY: the kernel reads `size` bytes of the attributes, which are valid.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(Refused::last(WHAT)),
    }
}

/// The policy of the calling thread by its number, and its real-time priority.
pub(crate) fn policy() -> (u64, u64) {
    let mut priority = MaybeUninit::<libc::sched_param>::zeroed();
    // SAFETY: the place is valid to write to.
    unsafe { libc::syscall(libc::SYS_sched_getparam, 0, priority.as_mut_ptr()) };
    // SAFETY: zeros are a value of sched_param, which the kernel has overwritten or not.
    let priority = unsafe { priority.assume_init() }.sched_priority;
    // SAFETY: sched_getscheduler takes no pointers.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    // A flag of the thread, not part of its policy.
    let policy = policy & !libc::c_long::from(libc::SCHED_RESET_ON_FORK);
    (u64::try_from(policy).unwrap_or(0), u64::try_from(priority).unwrap_or(0))
}

/// A request for idle states with at most this exit latency. It lasts until it is dropped.
pub(crate) struct IdleLimit(c_int);

impl IdleLimit {
    pub(crate) fn hold(latency: Duration) -> Result<IdleLimit, Refused> {
        const WHAT: &CStr =
            c"/dev/cpu_dma_latency can't be written: it needs root, or the right to write it";
        let micros = i32::try_from(latency.as_micros()).unwrap_or(i32::MAX);
        let (path, flags) = (c"/dev/cpu_dma_latency", libc::O_WRONLY | libc::O_CLOEXEC);
        // SAFETY: the path is a valid C string.
        let descriptor = unsafe { libc::open(path.as_ptr(), flags) };
        if descriptor < 0 {
            return Err(Refused::last(WHAT));
        }
        let limit = IdleLimit(descriptor);
        // SAFETY: four bytes of a valid number are read.
        match unsafe { libc::write(descriptor, (&raw const micros).cast(), 4) } {
            4 => Ok(limit),
            _ => Err(Refused::last(WHAT)),
        }
    }
}

impl Drop for IdleLimit {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and is used no more.
        unsafe { libc::close(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn policy_is_without_the_flag_that_children_do_not_inherit_it() {
        let seen = thread::spawn(|| {
            let none = libc::sched_param { sched_priority: 0 };
            let batch = libc::SCHED_BATCH | libc::SCHED_RESET_ON_FORK;
            // SAFETY: the parameters are valid.
            let set =
                unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, batch, &raw const none) };
            (set, policy())
        });
        let batch = u64::from(libc::SCHED_BATCH.cast_unsigned());
        assert_eq!(seen.join().unwrap(), (0, (batch, 0)));
    }

    #[test]
    fn whole_stack_of_a_thread_can_be_touched() {
        let large = thread::Builder::new().stack_size(8 << 20);
        let thread = large.spawn(|| {
            let most = stack_left() - (20 << 10);
            (touch_stack(most), touch_stack(most + (20 << 10)).map_err(|why| why.errno()))
        });
        assert_eq!(thread.unwrap().join().unwrap(), (Ok(()), Err(libc::ENOMEM)));
    }
}
