//! Permissions and resource limits of latlab, and of real-time tasks started in the same way.

use super::{Check, Diagnosis, Severity};
use crate::machine::{Machine, ResourceLimit, SETCAP};

pub(super) const CHECKS: &[Check] = &[
    ("no-realtime-right", missing_realtime_permission),
    ("priority-limit", priority_limit),
    ("memory-lock-limit", memory_lock_limit),
    ("realtime-limit", realtime_limit),
    ("no-tracing-right", missing_tracing_permission),
];

/// Returns the highest real-time priority of a process without `CAP_SYS_NICE`.
fn limited_priority(machine: &Machine) -> Option<u64> {
    match (machine.rights.can("CAP_SYS_NICE")?, machine.rights.rtprio?) {
        (false, ResourceLimit::At(priority)) => Some(priority),
        _ => None,
    }
}

fn missing_realtime_permission(machine: &Machine) -> Option<Diagnosis> {
    if limited_priority(machine)? > 0 {
        return None;
    }
    Diagnosis::new(
        Severity::Fatal,
        "no permission for real-time priority: no CAP_SYS_NICE, and RLIMIT_RTPRIO is 0",
        "Latencies of a SCHED_OTHER task say nothing about those of a real-time task.",
        format!(
            "Run latlab as root, or give it the right: `{SETCAP}`; or set rtprio 95 for the user \
             in /etc/security/limits.conf, and log in again. In a container: `--cap-add=SYS_NICE`"
        ),
    )
}

fn priority_limit(machine: &Machine) -> Option<Diagnosis> {
    let priority = limited_priority(machine).filter(|priority| (1..99).contains(priority))?;
    // IRQ threads have priority 50 (kernel/irq/manage.c).
    let severity = if priority <= 50 { Severity::Medium } else { Severity::Info };
    Diagnosis::new(
        severity,
        format!("real-time priority is limited to {priority} (RLIMIT_RTPRIO)"),
        "Tasks with a higher priority preempt the measured task; IRQ threads have 50.",
        format!(
            "Raise rtprio in /etc/security/limits.conf and log in again, or give latlab \
             CAP_SYS_NICE: `{SETCAP}`"
        ),
    )
}

fn memory_lock_limit(machine: &Machine) -> Option<Diagnosis> {
    let locked = machine.rights.can("CAP_IPC_LOCK")?;
    let (false, ResourceLimit::At(bytes)) = (locked, machine.rights.memlock?) else {
        return None;
    };
    Diagnosis::new(
        Severity::Medium,
        format!("only {} KiB of memory may be locked (RLIMIT_MEMLOCK)", bytes / 1024),
        "Above this limit mlockall() fails, and memory that is not locked can fault during a \
         measurement.",
        format!(
            "`ulimit -l unlimited`, memlock in /etc/security/limits.conf, or CAP_IPC_LOCK: \
             `{SETCAP}`"
        ),
    )
}

fn realtime_limit(machine: &Machine) -> Option<Diagnosis> {
    let ResourceLimit::At(us) = machine.rights.rttime? else {
        return None;
    };
    Diagnosis::new(
        Severity::Medium,
        format!("real-time threads may run {us} us without sleeping (RLIMIT_RTTIME)"),
        "The kernel sends SIGXCPU to a process that runs longer without sleeping, which ends it.",
        "Raise the limit for tasks that busy-wait; rtkit and desktop portals set it for their \
         clients.",
    )
}

fn missing_tracing_permission(machine: &Machine) -> Option<Diagnosis> {
    let rights = &machine.rights;
    if rights.can("CAP_SYS_ADMIN")? || (rights.can("CAP_BPF")? && rights.can("CAP_PERFMON")?) {
        return None;
    }
    Diagnosis::new(
        Severity::Info,
        "no permission to trace: CAP_BPF and CAP_PERFMON are missing",
        "Latencies can be measured, but `latlab explain` cannot trace the kernel.",
        format!("Run latlab as root, or give it the right: `{SETCAP}`"),
    )
}
