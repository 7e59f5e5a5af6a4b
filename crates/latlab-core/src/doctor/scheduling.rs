//! Competing tasks, watchdogs, and limits on real-time tasks.

use super::{Check, Diagnosis, Severity, count, few};
use crate::machine::{Machine, RealtimeThread, Throttle};
use crate::remedy;

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
    ("slice-extension", slice_extension),
    ("proxy-execution", proxy_execution),
];

fn rt_group(machine: &Machine) -> Option<Diagnosis> {
    let group = machine.scheduling.cgroup.as_ref().filter(|group| group.rt_runtime_us == 0)?;
    Diagnosis::new(
        Severity::Fatal,
        format!("the cgroup '{}' has no real-time runtime (cpu.rt_runtime_us is 0)", group.path),
        "With CONFIG_RT_GROUP_SCHED the kernel refuses real-time priority in such a group, even \
         to root.",
        "Start from the root group (`echo $$ > /sys/fs/cgroup/cpu/cgroup.procs`; with version 2, \
         /sys/fs/cgroup/cgroup.procs), set cpu.rt_runtime_us of the group and its parents, or, \
         since Linux 6.16, boot with `rt_group_sched=0`",
    )
}

fn rt_throttled(machine: &Machine) -> Option<Diagnosis> {
    let throttles = machine.throttles();
    if throttles.is_empty() {
        return None;
    }
    let what: Vec<String> = throttles.iter().map(|throttle| limit(*throttle, machine)).collect();
    let why: Vec<&str> = throttles.iter().map(|throttle| effect(*throttle)).collect();
    Diagnosis::new(
        Severity::Info,
        what.join("; "),
        format!("{}{}", why.join(" "), without_limit(&throttles)),
        format!(
            "Keep it, unless a task busy-waits on purpose and leaves a CPU to the others; then, {}",
            remedy::throttling(&throttles)
        ),
    )
}

/// The limit that this throttle sets, as a clause.
fn limit(throttle: Throttle, machine: &Machine) -> String {
    let (runtime, period) = throttle.runtime_and_period_us(machine);
    match (throttle, &machine.scheduling.fair_server) {
        (Throttle::RtRuntime, _) => {
            format!("real-time tasks may run {runtime} us in every {period} us")
        }
        (Throttle::FairServer, Some(server)) => format!(
            "the fair server runs starving SCHED_OTHER tasks ahead of real-time tasks, for {} us in \
             every {period} us",
            server.runtime_ns / 1_000
        ),
        (Throttle::FairServer, None) => {
            "the fair server runs starving SCHED_OTHER tasks ahead of real-time tasks".to_owned()
        }
    }
}

/// What this throttle does to real-time tasks, as a sentence.
fn effect(throttle: Throttle) -> &'static str {
    match throttle {
        Throttle::RtRuntime => {
            "If the real-time tasks of a CPU together run longer, all of them are throttled until \
             the period ends; a runaway task cannot hang the machine."
        }
        Throttle::FairServer => {
            "The fair server is a SCHED_DEADLINE server: if real-time tasks leave too little of a \
             CPU to SCHED_OTHER tasks, these run first for that time, and real-time tasks of all \
             priorities wait; a runaway task cannot hang the machine."
        }
    }
}

/// That the usual limit is not the one of this kernel, where that is so.
fn without_limit(throttles: &[Throttle]) -> &'static str {
    if throttles == [Throttle::FairServer] {
        " On this kernel, kernel.sched_rt_runtime_us does not limit real-time tasks."
    } else {
        ""
    }
}

fn rt_unthrottled(machine: &Machine) -> Option<Diagnosis> {
    if !machine.throttles().is_empty() {
        return None;
    }
    let (what, remedy) = if machine.has_fair_server() {
        (
            "the fair server of SCHED_OTHER tasks is off (its runtime is 0)".to_owned(),
            "`echo 50000000 | tee /sys/kernel/debug/sched/fair_server/cpu*/runtime`",
        )
    } else {
        let runtime = machine.rt_runtime_us?;
        (
            format!("real-time throttling is off (sched_rt_runtime_us is {runtime})"),
            "`sysctl kernel.sched_rt_runtime_us=950000`",
        )
    };
    Diagnosis::new(
        Severity::Medium,
        what,
        "Tasks that busy-wait need it, but it is dangerous: a runaway real-time task starves its \
         CPU, kernel threads included, and can hang the machine.",
        format!("{remedy}, unless a task busy-waits on purpose and leaves a CPU to the others."),
    )
}

fn described(threads: &[&RealtimeThread]) -> String {
    let describe = |thread: &&RealtimeThread| match thread.policy.as_str() {
        "deadline" => format!("{}[{}] deadline", thread.comm, thread.tid),
        policy => format!("{}[{}] {policy} {}", thread.comm, thread.tid, thread.priority),
    };
    few(&threads.iter().map(describe).collect::<Vec<_>>())
}

/// User threads at the highest real-time priority.
fn highest_priority_taken(machine: &Machine) -> Option<Diagnosis> {
    let highest: Vec<&RealtimeThread> =
        users(machine).filter(|thread| thread.priority >= 99).collect();
    let first = highest.first()?;
    Diagnosis::new(
        Severity::High,
        format!("user threads have the highest priority: {}", described(&highest)),
        "No measured task can preempt them, and kernel threads, IRQ threads included, wait for \
         them.",
        format!(
            "Lower it: `chrt -f -p 50 {}`, or CPUSchedulingPriority= in the service's unit.",
            first.tid
        ),
    )
}

fn rt_rivals(machine: &Machine) -> Option<Diagnosis> {
    let mut rivals: Vec<&RealtimeThread> =
        users(machine).filter(|thread| thread.priority < 99).collect();
    if rivals.is_empty() {
        return None;
    }
    rivals.sort_by_key(|thread| std::cmp::Reverse(thread.priority));
    Diagnosis::new(
        Severity::Info,
        format!("{} of real-time priority: {}", count(rivals.len(), "thread"), described(&rivals)),
        "They preempt tasks of lower priority, and delay tasks of equal priority on their CPU; \
         deadline tasks are above all priorities.",
        remedy::sentence(remedy::OUTRANK_RIVALS) + ".",
    )
}

fn users(machine: &Machine) -> impl Iterator<Item = &RealtimeThread> {
    machine.scheduling.rt_threads.iter().filter(|thread| !thread.kernel)
}

/// The guide: `CONFIG_LOCKUP_DETECTOR`, high; here, whether it is active.
fn soft_watchdog(machine: &Machine) -> Option<Diagnosis> {
    if machine.scheduling.soft_watchdog != Some(true) {
        return None;
    }
    // The kernel samples five times in twice the threshold (kernel/watchdog.c).
    let every = machine.scheduling.watchdog_thresh.map(|thresh| thresh.saturating_mul(400));
    let every =
        every.map_or("every few seconds".to_owned(), |ms| format!("every {} ms", ms.max(1)));
    Diagnosis::new(
        Severity::High,
        format!("the soft lockup detector interrupts each CPU {every} (kernel.soft_watchdog=1)"),
        "Its timer runs in hard interrupt context, on PREEMPT_RT too, and wakes a thread of the \
         highest priority.",
        "`sysctl kernel.soft_watchdog=0`, or boot with `nosoftlockup`; use a hardware watchdog.",
    )
}

/// The guide: `CONFIG_LOCKUP_DETECTOR`, high; here, whether it is active.
fn nmi_watchdog(machine: &Machine) -> Option<Diagnosis> {
    if machine.scheduling.nmi_watchdog != Some(true) {
        return None;
    }
    Diagnosis::new(
        Severity::High,
        "the hard lockup detector is on (kernel.nmi_watchdog=1)",
        "Its interrupts cannot be masked, and it occupies a performance counter.",
        "`sysctl kernel.nmi_watchdog=0`, or boot with `nmi_watchdog=0`; for one measurement: \
         `latlab run --set nmi_watchdog=0`",
    )
}

fn timer_migration(machine: &Machine) -> Option<Diagnosis> {
    if machine.scheduling.timer_migration != Some(true) || machine.cpus.len() < 2 {
        return None;
    }
    Diagnosis::new(
        Severity::Medium,
        "timers of idle CPUs migrate to busy ones (kernel.timer_migration=1)",
        "A CPU with a real-time task is busy, and gets the timer interrupts of other CPUs.",
        "`sysctl kernel.timer_migration=0`; for one measurement: `latlab run --set \
         timer_migration=0`",
    )
}

fn numa_balancing(machine: &Machine) -> Option<Diagnosis> {
    let mode = machine.scheduling.numa_balancing.filter(|mode| *mode != 0)?;
    Diagnosis::new(
        Severity::Medium,
        format!("memory is migrated between NUMA nodes (kernel.numa_balancing={mode})"),
        "The kernel unmaps pages to find out where they are used, so that even locked memory \
         faults, and copies them while the task waits.",
        "`sysctl kernel.numa_balancing=0`; for one measurement: `latlab run --set \
         numa_balancing=0`",
    )
}

/// On a `PREEMPT_RT` kernel only SCHED_OTHER tasks wait for it (`TIF_SLICE_EXT_SCHED`,
/// `kernel/entry/common.c`).
fn slice_extension(machine: &Machine) -> Option<Diagnosis> {
    let realtime = machine.preempt.as_deref() == Some("rt");
    if realtime || !is_on(machine, "CONFIG_RSEQ_SLICE_EXTENSION", "rseq_slice_ext") {
        return None;
    }
    let longest_us = machine.scheduling.slice_extension_ns.unwrap_or(5_000) / 1_000;
    Diagnosis::new(
        Severity::Medium,
        format!("a program may keep its CPU for {longest_us} us more (rseq time slice extension)"),
        "A program that asks for it in its critical sections is preempted that much later, also by \
         real-time tasks.",
        "Boot with `rseq_slice_ext=off`, if a program on the CPUs of real-time tasks asks for it.",
    )
}

fn proxy_execution(machine: &Machine) -> Option<Diagnosis> {
    if !is_on(machine, "CONFIG_SCHED_PROXY_EXEC", "sched_proxy_exec") {
        return None;
    }
    Diagnosis::new(
        Severity::Info,
        "the owner of a mutex of the kernel runs in place of the task that waits for it (proxy \
         execution)",
        "It shortens priority inversion in the kernel; meanwhile a task of low priority runs ahead of \
         real-time tasks between the two, and tools name it with the priority of the other.",
        "No action; to compare, boot with `sched_proxy_exec=0`.",
    )
}

/// Whether the kernel has this option, and it was not switched off when it was booted.
fn is_on(machine: &Machine, option: &str, parameter: &str) -> bool {
    let off = ["0", "off", "n", "no"];
    machine.has_config(option)
        && !machine.boot_parameter(parameter).is_some_and(|value| off.contains(&value))
}
