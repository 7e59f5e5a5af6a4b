//! Resources that threads and processes have used, as the kernel counts them (`getrusage(2)`).
//! rustix 1.1 has neither getrusage(2) nor wait4(2) with its resource usage.

use latlab_core::time::Nanos;
use rustix::process::Pid;
use std::io;

/// Page faults and preemptions of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults served without a disk.
    pub minor_faults: u64,
    /// Page faults served from a disk.
    pub major_faults: u64,
    /// Involuntary context switches.
    pub preempted: u64,
}

/// The usage of the calling thread so far.
pub fn of_thread() -> Usage {
    let usage = read(libc::RUSAGE_THREAD);
    Usage {
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        preempted: count(usage.ru_nivcsw),
    }
}

/// Context switches away from tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The task waited for something.
    pub voluntary: u64,
    /// Another task preempted it, or its time slice was over.
    pub involuntary: u64,
}

/// The context switches of this process and of all its children that were reaped.
pub fn switches() -> Switches {
    let mut switches = Switches::default();
    for usage in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(read) {
        switches.voluntary += count(usage.ru_nvcsw);
        switches.involuntary += count(usage.ru_nivcsw);
    }
    switches
}

/// CPU time of all children of this process that were reaped.
pub fn of_children() -> Nanos {
    cpu_time(&read(libc::RUSAGE_CHILDREN))
}

/// Waits for a child to end and reaps it. Returns its wait status, and the CPU time of the child
/// and of the children that it reaped.
pub(crate) fn wait(child: Pid) -> io::Result<(i32, Nanos)> {
    let (mut status, mut used) = (0, empty());
    let pid = child.as_raw_nonzero().get();
    // SAFETY: status and usage are valid to write to.
    crate::checked(unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut used) })?;
    Ok((status, cpu_time(&used)))
}

fn read(who: libc::c_int) -> libc::rusage {
    let mut usage = empty();
    // SAFETY: `usage` is valid to write to; the call fails only for an unknown `who`.
    unsafe { libc::getrusage(who, &raw mut usage) };
    usage
}

fn empty() -> libc::rusage {
    // SAFETY: rusage is made of integers, for which all bits zero is a value.
    unsafe { std::mem::zeroed() }
}

/// User and system time together.
fn cpu_time(usage: &libc::rusage) -> Nanos {
    let nanos = |t: libc::timeval| count(t.tv_sec) * 1_000_000_000 + count(t.tv_usec) * 1_000;
    Nanos(nanos(usage.ru_utime) + nanos(usage.ru_stime))
}

fn count(number: libc::c_long) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
