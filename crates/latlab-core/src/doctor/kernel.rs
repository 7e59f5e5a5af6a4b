//! Preemption of the kernel and of its interrupt handlers.

use super::{Check, Diagnosis, Severity};
use crate::machine::Machine;
use crate::remedy;

pub(super) const CHECKS: &[Check] = &[
    ("no-preempt-rt", missing_preempt_rt),
    ("preemption-model", preemption_model),
    ("unthreaded-interrupts", unthreaded_interrupts),
];

/// The guide: `CONFIG_PREEMPT_RT`, fatal.
fn missing_preempt_rt(machine: &Machine) -> Option<Diagnosis> {
    let model = machine.preempt.as_deref();
    let known = model.is_some() || machine.version.is_some();
    if !known || model == Some("rt") {
        return None;
    }
    let model = model.map_or(String::new(), |model| format!(", preemption model '{model}'"));
    Diagnosis::new(
        Severity::Fatal,
        format!("Linux {} is not fully preemptible (no PREEMPT_RT{model})", machine.kernel),
        "Interrupt handlers, softirqs and sections under a spinlock cannot be preempted, so that \
         the longest of them in any driver adds to the worst case.",
        remedy::sentence(remedy::REALTIME_KERNEL)
            + ": it is in Linux since 6.12, and distributions package it as linux-image-rt, \
               kernel-rt or linux-rt.",
    )
}

fn preemption_model(machine: &Machine) -> Option<Diagnosis> {
    let model = machine.preempt.as_deref()?;
    let (severity, what, why) = match model {
        "none" => (
            Severity::High,
            "kernel code is not preemptible (model 'none')",
            "A woken task waits until the running system call returns or sleeps, whatever their \
             priorities.",
        ),
        "voluntary" => (
            Severity::High,
            "kernel code is preemptible only at explicit preemption points (model 'voluntary')",
            "A woken task waits until the running system call reaches its next preemption point, \
             whatever their priorities.",
        ),
        "lazy" => (
            Severity::Info,
            "SCHED_OTHER tasks in the kernel are preempted at ticks only (model 'lazy')",
            "Real-time tasks preempt at once, but a woken SCHED_OTHER task waits up to a tick \
             longer than with 'full'.",
        ),
        _ => return None,
    };
    let switchable = machine.preempt_modes.iter().any(|mode| mode == "full");
    let more = if switchable {
        "; or, until the next boot and with debugfs mounted: `echo full > \
         /sys/kernel/debug/sched/preempt`"
    } else {
        "."
    };
    Diagnosis::new(severity, what, why, remedy::sentence(remedy::preemption(machine)) + more)
}

/// On a `PREEMPT_RT` kernel, IRQ handlers are always threaded.
fn unthreaded_interrupts(machine: &Machine) -> Option<Diagnosis> {
    let realtime = machine.preempt.as_deref() == Some("rt");
    let could = machine.has_config("CONFIG_IRQ_FORCED_THREADING");
    if realtime || !could || machine.boot_parameter("threadirqs").is_some() {
        return None;
    }
    Diagnosis::new(
        Severity::Medium,
        "IRQ handlers are not threaded (booted without threadirqs)",
        "They preempt every task whatever its priority; as IRQ threads they have priorities, which \
         `latlab adapt` can choose.",
        remedy::sentence(remedy::THREAD_INTERRUPTS) + ".",
    )
}
