//! Who competes for the CPUs, and what limits real-time tasks.

use super::{Check, Severity, Verdict, count, few};
use crate::machine::{Machine, Thread};

pub(super) const CHECKS: &[Check] = &[
    ("rt-group", rt_group),
    ("rt-throttled", rt_throttled),
    ("rt-unthrottled", rt_unthrottled),
    ("highest-priority-taken", highest_priority_taken),
    ("rt-rivals", rt_rivals),
    ("soft-watchdog", soft_watchdog),
    ("nmi-watchdog", nmi_watchdog),
    ("timer-migration", timer_migration),
    ("numa-balancing", numa_balancing),
];

fn rt_group(machine: &Machine) -> Option<Verdict> {
    let group = machine.scheduling.cgroup.as_ref().filter(|group| group.rt_runtime_us == 0)?;
    Verdict::new(
        Severity::Fatal,
        format!("the cgroup '{}' has no time for real-time tasks (cpu.rt_runtime_us)", group.path),
        "With CONFIG_RT_GROUP_SCHED the kernel refuses real-time priority in such a group, even \
         to root.",
        "Start from the root group (`echo $$ > /sys/fs/cgroup/cpu/cgroup.procs`; with version 2, \
         /sys/fs/cgroup/cgroup.procs), give the group and its parents time in cpu.rt_runtime_us, \
         or, since Linux 6.16, boot with `rt_group_sched=0`",
    )
}

/// The period of the limit on real-time tasks, in microseconds; a second unless it was changed.
fn period_us(machine: &Machine) -> i64 {
    let period = machine.scheduling.rt_period_us.and_then(|us| i64::try_from(us).ok());
    period.unwrap_or(1_000_000)
}

fn rt_throttled(machine: &Machine) -> Option<Verdict> {
    let period = period_us(machine);
    let runtime = machine.rt_runtime_us.filter(|runtime| (0..period).contains(runtime))?;
    // Linux 6.12 replaced the limit by a server for ordinary tasks, but not for groups.
    let server = machine.kernel_version().is_some_and(|version| version >= (6, 12))
        && !machine.has_config("CONFIG_RT_GROUP_SCHED");
    let why = if server {
        "The kernel grants the rest to ordinary tasks that starve (fair server): a real-time task \
         that sleeps in time never notices, one that spins is interrupted."
    } else {
        "A real-time task that runs longer without sleeping is stopped until the period ends; one \
         that sleeps in time never notices, and a runaway one can't hang the machine."
    };
    Verdict::new(
        Severity::Info,
        format!("real-time tasks may run {runtime} us in every {period} us"),
        why,
        "Leave it, unless a task spins on purpose and leaves a CPU to the others; then, for one \
         measurement: `latlab run --set rt_runtime_us=-1`",
    )
}

fn rt_unthrottled(machine: &Machine) -> Option<Verdict> {
    let period = period_us(machine);
    let runtime = machine.rt_runtime_us.filter(|runtime| !(0..period).contains(runtime))?;
    let served =
        machine.scheduling.fair_server.as_ref().is_some_and(|server| server.runtime_ns > 0);
    let (severity, still) = if served {
        (Severity::Info, "; only the fair server still lets ordinary tasks run")
    } else {
        (Severity::Medium, "")
    };
    Verdict::new(
        severity,
        format!("nothing limits real-time tasks (sched_rt_runtime_us is {runtime}){still}"),
        "It is what a task that spins on purpose needs, and dangerous with any other: one that \
         runs away starves its CPU, kernel threads included, and can hang the machine.",
        "`sysctl kernel.sched_rt_runtime_us=950000`, unless something spins on purpose and leaves \
         a CPU to the others.",
    )
}

fn described(threads: &[&Thread]) -> String {
    let describe = |thread: &&Thread| match thread.policy.as_str() {
        "deadline" => format!("{}[{}] deadline", thread.comm, thread.tid),
        policy => format!("{}[{}] {policy} {}", thread.comm, thread.tid, thread.priority),
    };
    few(&threads.iter().map(describe).collect::<Vec<_>>())
}

/// Threads of users at the highest priority there is.
fn highest_priority_taken(machine: &Machine) -> Option<Verdict> {
    let highest: Vec<&Thread> = users(machine).filter(|thread| thread.priority >= 99).collect();
    let first = highest.first()?;
    Verdict::new(
        Severity::High,
        format!("at the highest priority: {}", described(&highest)),
        "No task that is measured can preempt them, and the kernel's own threads, those of \
         interrupts included, wait for them.",
        format!(
            "Give them less: `chrt -f -p 50 {}`, or CPUSchedulingPriority= in the service's unit.",
            first.tid
        ),
    )
}

fn rt_rivals(machine: &Machine) -> Option<Verdict> {
    let mut rivals: Vec<&Thread> = users(machine).filter(|thread| thread.priority < 99).collect();
    if rivals.is_empty() {
        return None;
    }
    rivals.sort_by_key(|thread| std::cmp::Reverse(thread.priority));
    Verdict::new(
        Severity::Info,
        format!("{} of real-time priority: {}", count(rivals.len(), "thread"), described(&rivals)),
        "They preempt everything below their priority, and on their CPU delay all that is equal; \
         deadline tasks are above all priorities.",
        "Put the measured task above them, or them on other CPUs (`taskset -p`).",
    )
}

fn users(machine: &Machine) -> impl Iterator<Item = &Thread> {
    machine.scheduling.rt_threads.iter().filter(|thread| !thread.kernel)
}

/// The guide: `CONFIG_LOCKUP_DETECTOR`, high; here, whether it runs.
fn soft_watchdog(machine: &Machine) -> Option<Verdict> {
    if machine.scheduling.soft_watchdog != Some(true) {
        return None;
    }
    // The kernel samples five times in twice the threshold (kernel/watchdog.c).
    let every = machine.scheduling.watchdog_thresh.map(|thresh| thresh.saturating_mul(400));
    let every =
        every.map_or("every few seconds".to_owned(), |ms| format!("every {} ms", ms.max(1)));
    Verdict::new(
        Severity::High,
        format!("the soft lockup detector interrupts each CPU {every} (kernel.soft_watchdog=1)"),
        "Its timer runs in hard interrupt context, on PREEMPT_RT too, and wakes a thread of the \
         highest priority.",
        "`sysctl kernel.soft_watchdog=0`, or boot with `nosoftlockup`; use a hardware watchdog.",
    )
}

/// The guide: `CONFIG_LOCKUP_DETECTOR`, high; here, whether it runs.
fn nmi_watchdog(machine: &Machine) -> Option<Verdict> {
    if machine.scheduling.nmi_watchdog != Some(true) {
        return None;
    }
    Verdict::new(
        Severity::High,
        "the hard lockup detector is on (kernel.nmi_watchdog=1)",
        "Its interrupts can't be masked, so that they come in the midst of anything, and it \
         occupies a performance counter.",
        "`sysctl kernel.nmi_watchdog=0`, or boot with `nmi_watchdog=0`; for one measurement: \
         `latlab run --set nmi_watchdog=0`",
    )
}

fn timer_migration(machine: &Machine) -> Option<Verdict> {
    if machine.scheduling.timer_migration != Some(true) || machine.cpus.len() < 2 {
        return None;
    }
    Verdict::new(
        Severity::Medium,
        "timers of idle CPUs move to busy ones (kernel.timer_migration=1)",
        "A CPU with a real-time task is a busy one, and gets the interrupts of timers that \
         others have set.",
        "`sysctl kernel.timer_migration=0`; for one measurement: `latlab run --set \
         timer_migration=0`",
    )
}

fn numa_balancing(machine: &Machine) -> Option<Verdict> {
    let mode = machine.scheduling.numa_balancing.filter(|mode| *mode != 0)?;
    Verdict::new(
        Severity::Medium,
        format!("memory moves between nodes (kernel.numa_balancing={mode})"),
        "The kernel unmaps pages to see who uses them, so that even locked memory faults, and \
         copies them while the task waits.",
        "`sysctl kernel.numa_balancing=0`; for one measurement: `latlab run --set \
         numa_balancing=0`",
    )
}
