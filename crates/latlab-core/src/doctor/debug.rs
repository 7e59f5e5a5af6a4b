//! What the kernel does to watch itself, and what it lets others watch.

use super::{Check, Severity, Verdict};
use crate::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    ("debug-options", debug_options),
    ("latency-tracers", latency_tracers),
    ("tracer-active", tracer_active),
    ("no-tracing", no_tracing),
    ("lockdown", lockdown),
];

/// Options that check, at run time, what the kernel does all the time. The guide names
/// `CONFIG_PROVE_LOCKING` and rates it high; the others work in the same way, or harder.
const COSTLY: &[&str] = &[
    "CONFIG_PROVE_LOCKING",
    "CONFIG_DEBUG_LOCK_ALLOC",
    "CONFIG_LOCK_STAT",
    "CONFIG_KASAN",
    "CONFIG_KCSAN",
    "CONFIG_KMSAN",
    "CONFIG_KCOV",
    "CONFIG_DEBUG_OBJECTS",
    "CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "CONFIG_DEBUG_KMEMLEAK",
    "CONFIG_SLUB_DEBUG_ON",
];

fn compiled_in(machine: &Machine, options: &[&str]) -> Option<String> {
    let found: Vec<&str> =
        options.iter().copied().filter(|option| machine.has_config(option)).collect();
    (!found.is_empty()).then(|| found.join(", "))
}

fn debug_options(machine: &Machine) -> Option<Verdict> {
    let options = compiled_in(machine, COSTLY)?;
    Verdict::new(
        Severity::High,
        format!("a debugging kernel: {options}"),
        "Each lock, allocation or memory access is checked while it happens, so that what is \
         measured here is the debugging.",
        "Find bugs with this kernel, and measure with one built without these options.",
    )
}

/// The guide: `CONFIG_IRQSOFF_TRACER` and `CONFIG_PREEMPT_TRACER`, high.
fn latency_tracers(machine: &Machine) -> Option<Verdict> {
    let options = compiled_in(machine, &["CONFIG_IRQSOFF_TRACER", "CONFIG_PREEMPT_TRACER"])?;
    Verdict::new(
        Severity::High,
        format!("compiled in: {options}"),
        "They instrument every place that turns interrupts or preemption off, which costs time \
         even while nothing is traced.",
        "Use a kernel built without them; `latlab explain` needs neither.",
    )
}

fn tracer_active(machine: &Machine) -> Option<Verdict> {
    let tracer = machine.tracer.as_deref().filter(|tracer| *tracer != "nop")?;
    Verdict::new(
        Severity::High,
        format!("the tracer '{tracer}' is active"),
        "It adds its own time to what it traces.",
        "`echo nop > /sys/kernel/tracing/current_tracer`",
    )
}

/// The guide: `CONFIG_TRACING` should be enabled, info.
fn no_tracing(machine: &Machine) -> Option<Verdict> {
    if machine.config("CONFIG_TRACING") != Some("n") {
        return None;
    }
    Verdict::new(
        Severity::Info,
        "the kernel has no tracing (CONFIG_TRACING is not set)",
        "It costs nothing while unused, and without it `latlab explain` can't say why a wake-up \
         was late.",
        "Use a kernel with CONFIG_TRACING=y.",
    )
}

fn lockdown(machine: &Machine) -> Option<Verdict> {
    let (severity, why) = match machine.lockdown.as_deref()? {
        "confidentiality" => (
            Severity::Medium,
            "Nobody may read kernel memory, root included, so that BPF, perf and tracing can't \
             find out why a wake-up was late.",
        ),
        "integrity" => (
            Severity::Info,
            "The kernel can't be changed while it runs: unsigned modules, such as latlab's test \
             driver, are refused.",
        ),
        _ => return None,
    };
    Verdict::new(
        severity,
        format!("kernel lockdown is at '{}'", machine.lockdown.as_deref().unwrap_or_default()),
        why,
        "Boot without `lockdown=` on the command line; where Secure Boot brings it, turn that off \
         in the firmware.",
    )
}
