//! What latlab, and a real-time task started like it, is permitted.

use super::{Check, Severity, Verdict};
use crate::machine::{Limit, Machine};

pub(super) const CHECKS: &[Check] = &[
    ("no-realtime-right", no_realtime_right),
    ("priority-limit", priority_limit),
    ("memory-lock-limit", memory_lock_limit),
    ("realtime-limit", realtime_limit),
    ("no-tracing-right", no_tracing_right),
];

/// The highest real-time priority of a process that has only its limit to rely on.
fn limited_priority(machine: &Machine) -> Option<u64> {
    match (machine.rights.can("CAP_SYS_NICE")?, machine.rights.rtprio?) {
        (false, Limit::At(priority)) => Some(priority),
        _ => None,
    }
}

fn no_realtime_right(machine: &Machine) -> Option<Verdict> {
    if limited_priority(machine)? > 0 {
        return None;
    }
    Verdict::new(
        Severity::Fatal,
        "no right to real-time priority: no CAP_SYS_NICE, and RLIMIT_RTPRIO is 0",
        "Measured as an ordinary task, a latency says nothing about what a real-time task would \
         see.",
        "Run latlab as root, or: `setcap cap_sys_nice,cap_ipc_lock+ep latlab`; or let the user \
         have it in /etc/security/limits.conf (rtprio 95), and log in again. In a container: \
         `--cap-add=SYS_NICE`",
    )
}

fn priority_limit(machine: &Machine) -> Option<Verdict> {
    let priority = limited_priority(machine).filter(|priority| (1..99).contains(priority))?;
    // Interrupt threads have priority 50 (kernel/irq/manage.c).
    let severity = if priority <= 50 { Severity::Medium } else { Severity::Info };
    Verdict::new(
        severity,
        format!("real-time priority is limited to {priority} (RLIMIT_RTPRIO)"),
        "Whatever has a higher priority preempts the task; interrupt threads have 50.",
        "Raise rtprio in /etc/security/limits.conf and log in again, or run latlab with \
         CAP_SYS_NICE.",
    )
}

fn memory_lock_limit(machine: &Machine) -> Option<Verdict> {
    let locked = machine.rights.can("CAP_IPC_LOCK")?;
    let (false, Limit::At(bytes)) = (locked, machine.rights.memlock?) else {
        return None;
    };
    Verdict::new(
        Severity::Medium,
        format!("only {} KiB of memory may be locked (RLIMIT_MEMLOCK)", bytes / 1024),
        "Beyond that mlockall() fails, and what is not locked can fault in the midst of a \
         measurement.",
        "`ulimit -l unlimited`, memlock in /etc/security/limits.conf, or CAP_IPC_LOCK.",
    )
}

fn realtime_limit(machine: &Machine) -> Option<Verdict> {
    let Limit::At(us) = machine.rights.rttime? else {
        return None;
    };
    Verdict::new(
        Severity::Medium,
        format!("real-time threads may run {us} us without sleeping (RLIMIT_RTTIME)"),
        "The kernel sends SIGXCPU to a process that spins longer, which ends it.",
        "Raise the limit for tasks that spin; rtkit and desktop portals set it for their clients.",
    )
}

fn no_tracing_right(machine: &Machine) -> Option<Verdict> {
    let rights = &machine.rights;
    if rights.can("CAP_SYS_ADMIN")? || (rights.can("CAP_BPF")? && rights.can("CAP_PERFMON")?) {
        return None;
    }
    Verdict::new(
        Severity::Info,
        "no right to trace: no CAP_BPF with CAP_PERFMON",
        "Latencies can be measured, but `latlab explain` can't ask the kernel why they were long.",
        "Run latlab as root, or: `setcap cap_sys_nice,cap_ipc_lock,cap_bpf,cap_perfmon+ep latlab`",
    )
}
