//! Debugging and tracing: instrumentation that is active, and tracing that is unavailable.

use super::{Check, Diagnosis, Severity};
use crate::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    ("debug-options", debug_options),
    ("latency-tracers", latency_tracers),
    ("tracer-active", tracer_active),
    ("no-tracing", tracing_unavailable),
    ("lockdown", lockdown),
];

/// Options that check kernel operations at run time. The guide names `CONFIG_PROVE_LOCKING` and
/// rates it high; the others cost as much or more.
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

fn debug_options(machine: &Machine) -> Option<Diagnosis> {
    let options = compiled_in(machine, COSTLY)?;
    Diagnosis::new(
        Severity::High,
        format!("debugging options are enabled: {options}"),
        "Every lock operation, allocation or memory access is checked, so that measurements mostly \
         show the cost of debugging.",
        "Use this kernel to find bugs, and measure with one built without these options.",
    )
}

/// The guide: `CONFIG_IRQSOFF_TRACER` and `CONFIG_PREEMPT_TRACER`, high.
fn latency_tracers(machine: &Machine) -> Option<Diagnosis> {
    let options = compiled_in(machine, &["CONFIG_IRQSOFF_TRACER", "CONFIG_PREEMPT_TRACER"])?;
    Diagnosis::new(
        Severity::High,
        format!("latency tracers are compiled in: {options}"),
        "They instrument every place that disables interrupts or preemption, which costs time even \
         while no tracer is active.",
        "Use a kernel built without them; `latlab explain` needs neither.",
    )
}

fn tracer_active(machine: &Machine) -> Option<Diagnosis> {
    let tracer = machine.tracer.as_deref().filter(|tracer| *tracer != "nop")?;
    Diagnosis::new(
        Severity::High,
        format!("the tracer '{tracer}' is active"),
        "It adds its own overhead to every traced operation.",
        "`echo nop > /sys/kernel/tracing/current_tracer`",
    )
}

/// The guide: `CONFIG_TRACING` should be enabled, info.
fn tracing_unavailable(machine: &Machine) -> Option<Diagnosis> {
    if machine.config("CONFIG_TRACING") != Some("n") {
        return None;
    }
    Diagnosis::new(
        Severity::Info,
        "the kernel has no tracing (CONFIG_TRACING is not set)",
        "Unused tracing costs nothing, and without it `latlab explain` cannot find out why a \
         wake-up was late.",
        "Use a kernel with CONFIG_TRACING=y.",
    )
}

fn lockdown(machine: &Machine) -> Option<Diagnosis> {
    let (severity, why) = match machine.lockdown.as_deref()? {
        "confidentiality" => (
            Severity::Medium,
            "Nobody, not even root, may read kernel memory, so that BPF, perf and tracing cannot \
             show why a wake-up was late.",
        ),
        "integrity" => (
            Severity::Info,
            "The running kernel cannot be modified: unsigned modules, such as latlab's test \
             driver, are refused.",
        ),
        _ => return None,
    };
    Diagnosis::new(
        severity,
        format!("kernel lockdown is at '{}'", machine.lockdown.as_deref().unwrap_or_default()),
        why,
        "Boot without `lockdown=` on the command line; if Secure Boot enables it, disable Secure \
         Boot in the firmware.",
    )
}
