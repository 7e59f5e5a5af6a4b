//! Whether the kernel and its interrupt handlers can be preempted.

use super::{Check, Severity, Verdict};
use crate::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    ("no-preempt-rt", no_preempt_rt),
    ("preemption-model", preemption_model),
    ("unthreaded-interrupts", unthreaded_interrupts),
];

/// The guide: `CONFIG_PREEMPT_RT`, fatal.
fn no_preempt_rt(machine: &Machine) -> Option<Verdict> {
    let model = machine.preempt.as_deref();
    let known = model.is_some() || machine.version.is_some();
    if !known || model == Some("rt") {
        return None;
    }
    let model = model.map_or(String::new(), |model| format!(", its model is '{model}'"));
    Verdict::new(
        Severity::Fatal,
        format!("Linux {} can't be preempted everywhere (no PREEMPT_RT{model})", machine.kernel),
        "Interrupt handlers, softirqs and everything under a spinlock run to their end, so the \
         longest of them in any driver is part of the worst case.",
        "Boot a kernel with CONFIG_PREEMPT_RT=y: it is in Linux since 6.12, and distributions \
         package it as linux-image-rt, kernel-rt or linux-rt.",
    )
}

fn preemption_model(machine: &Machine) -> Option<Verdict> {
    let model = machine.preempt.as_deref()?;
    let (severity, what, why) = match model {
        "none" => (
            Severity::High,
            "kernel code is not preempted (model 'none')",
            "A woken task waits until the system call that runs returns or sleeps, whatever its \
             own priority.",
        ),
        "voluntary" => (
            Severity::High,
            "kernel code is preempted only where it offers to be (model 'voluntary')",
            "A woken task waits until the system call that runs reaches its next offer, whatever \
             its own priority.",
        ),
        "lazy" => (
            Severity::Info,
            "ordinary tasks are preempted in the kernel only at ticks (model 'lazy')",
            "Real-time tasks preempt at once, but an ordinary task that is woken waits up to a \
             tick longer than with 'full'.",
        ),
        _ => return None,
    };
    let switchable = machine.preempt_modes.iter().any(|mode| mode == "full");
    let remedy = if switchable {
        "Boot with `preempt=full`; or, until the next boot and with debugfs mounted: `echo full > \
         /sys/kernel/debug/sched/preempt`"
    } else {
        "Boot a kernel with CONFIG_PREEMPT=y or, better, CONFIG_PREEMPT_RT=y."
    };
    Verdict::new(severity, what, why, remedy)
}

/// On a `PREEMPT_RT` kernel they always are threads.
fn unthreaded_interrupts(machine: &Machine) -> Option<Verdict> {
    let realtime = machine.preempt.as_deref() == Some("rt");
    let could = machine.has_config("CONFIG_IRQ_FORCED_THREADING");
    if realtime || !could || machine.boot_parameter("threadirqs").is_some() {
        return None;
    }
    Verdict::new(
        Severity::Medium,
        "most interrupt handlers are no threads (booted without threadirqs)",
        "They preempt every task whatever its priority; as threads they would have priorities, \
         which `latlab adapt` could choose.",
        "Boot with `threadirqs`.",
    )
}
