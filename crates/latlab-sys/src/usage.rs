//! What the kernel has counted against a thread or a process (`getrusage(2)`).

use latlab_core::time::Nanos;

/// Faults and switches of the calling thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults served without a disk.
    pub minor_faults: u64,
    /// Page faults served from a disk.
    pub major_faults: u64,
    /// Times the CPU was taken from it.
    pub preempted: u64,
}

/// What the calling thread has used so far.
pub fn of_thread() -> Usage {
    let mut usage = empty();
    // SAFETY: `usage` is a valid rusage to write to; RUSAGE_THREAD exists since Linux 2.6.26.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    Usage {
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        preempted: count(usage.ru_nivcsw),
    }
}

/// How often tasks have given up their CPU by themselves, and how often it was taken from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Because they waited for something.
    pub voluntary: u64,
    /// Because another task was to run.
    pub involuntary: u64,
}

/// The context switches of this process, and of all its children that have ended and been waited
/// for.
pub fn switches() -> Switches {
    let mut switches = Switches::default();
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        let mut usage = empty();
        // SAFETY: `usage` is a valid rusage to write to.
        unsafe { libc::getrusage(who, &raw mut usage) };
        switches.voluntary += count(usage.ru_nvcsw);
        switches.involuntary += count(usage.ru_nivcsw);
    }
    switches
}

pub(crate) fn empty() -> libc::rusage {
    // SAFETY: rusage is made of integers, for which all bits zero is a value.
    unsafe { std::mem::zeroed() }
}

fn count(number: libc::c_long) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// User and system time together.
pub(crate) fn cpu_time(usage: &libc::rusage) -> Nanos {
    let nanos = |t: libc::timeval| count(t.tv_sec) * 1_000_000_000 + count(t.tv_usec) * 1_000;
    Nanos(nanos(usage.ru_utime) + nanos(usage.ru_stime))
}

/// CPU time of all children that have ended and been waited for.
pub fn of_children() -> Nanos {
    let mut usage = empty();
    // SAFETY: `usage` is a valid rusage to write to.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    cpu_time(&usage)
}
