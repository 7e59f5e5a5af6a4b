//! The processor: frequencies, idle states, hardware threads, heat, flaws.

use super::{Check, Severity, Verdict, count, few};
use crate::cpulist::CpuList;
use crate::machine::{IdleState, Machine};
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[
    ("governor", governor),
    ("lowest-frequency", lowest_frequency),
    ("other-governors", other_governors),
    ("no-cpufreq", no_cpufreq),
    ("boost", boost),
    ("deep-idle", deep_idle),
    ("no-cpuidle", no_cpuidle),
    ("smt", smt),
    ("thermal-throttling", thermal_throttling),
    ("mitigations", mitigations),
    ("old-microcode", old_microcode),
];

/// The guide: the frequency must be constant; `performance` is the easy way, high.
fn governor(machine: &Machine) -> Option<Verdict> {
    let varying: BTreeSet<&str> =
        governors(machine).filter(|governor| varies(machine, governor)).collect();
    if varying.is_empty() || is_pinned(machine) {
        return None;
    }
    let varying = varying.into_iter().collect::<Vec<_>>().join(" and ");
    Verdict::new(
        Severity::High,
        format!("the governor {varying} varies the CPU clock{}", range(machine)),
        "A CPU that was idle runs slowly when the task wakes, and changing the frequency takes \
         time of its own.",
        "`cpupower frequency-set -g performance`; for one measurement: `latlab run --set \
         governor=performance`",
    )
}

/// A clock that stands still at its lowest is no danger to determinism, only slow.
fn lowest_frequency(machine: &Machine) -> Option<Verdict> {
    let lowest = governors(machine).any(|governor| governor == "powersave");
    if !lowest || varies(machine, "powersave") || is_pinned(machine) {
        return None;
    }
    let min = machine.processor.frequency.min_khz;
    let min = min.map_or(String::new(), |khz| format!(", {} MHz", khz / 1000));
    Verdict::new(
        Severity::Info,
        format!("the governor powersave keeps the CPU at its lowest frequency{min}"),
        "Latencies are steady, but as long as this processor can make them.",
        "`cpupower frequency-set -g performance`; for one measurement: `latlab run --set \
         governor=performance`",
    )
}

/// The guide: non-performance governors, medium.
fn other_governors(machine: &Machine) -> Option<Verdict> {
    let options = [
        ("CONFIG_CPU_FREQ_GOV_CONSERVATIVE", "conservative"),
        ("CONFIG_CPU_FREQ_GOV_ONDEMAND", "ondemand"),
        ("CONFIG_CPU_FREQ_GOV_SCHEDUTIL", "schedutil"),
    ];
    let offered = &machine.processor.frequency.governors;
    let others: Vec<String> = options
        .into_iter()
        .filter(|(option, name)| {
            machine.has_config(option) && offered.iter().any(|governor| governor == name)
        })
        .map(|(_, name)| name.to_owned())
        .collect();
    let steady = governors(machine).all(|governor| !varies(machine, governor));
    if others.is_empty() || !steady || is_pinned(machine) {
        return None;
    }
    Verdict::new(
        Severity::Medium,
        format!("besides the governor in force, {} can be chosen", few(&others)),
        "A power daemon or a user can change the governor at any moment, and with it every \
         latency.",
        "Stop power-profiles-daemon, tuned or tlp while measuring; for a product, build the \
         kernel without these governors.",
    )
}

/// The guide: `CONFIG_CPU_FREQ` should be enabled, high. In a guest, the host has it.
fn no_cpufreq(machine: &Machine) -> Option<Verdict> {
    if machine.config("CONFIG_CPU_FREQ") != Some("n") || machine.hypervisor.is_some() {
        return None;
    }
    Verdict::new(
        Severity::High,
        "the kernel can't set the CPU clock (CONFIG_CPU_FREQ is not set)",
        "The CPU keeps the speed that the boot loader left it at, which need not be its full one.",
        "Use a kernel with CONFIG_CPU_FREQ=y and the governor performance, or make sure that the \
         boot loader sets the clock.",
    )
}

fn boost(machine: &Machine) -> Option<Verdict> {
    if machine.processor.frequency.boost != Some(true) {
        return None;
    }
    Verdict::new(
        Severity::Info,
        "CPUs may run above their nominal frequency (boost)",
        "How far and how long depends on temperature and on the other CPUs, so that runs differ \
         for no reason seen in them.",
        "For steady results: `latlab run --set boost=0`; for good: `echo 0 > \
         /sys/devices/system/cpu/cpufreq/boost`, or with intel_pstate `echo 1 > \
         /sys/devices/system/cpu/intel_pstate/no_turbo`",
    )
}

/// The guide: idle states should be there, but be capped at C1.
fn deep_idle(machine: &Machine) -> Option<Verdict> {
    // What a task on its way to 100 us notices, and what alone spoils it.
    const NOTICED_US: u64 = 10;
    const SPOILT_US: u64 = 100;
    let state = deepest(machine)?;
    let severity = match state.latency_us {
        ..NOTICED_US => return None,
        NOTICED_US..SPOILT_US => Severity::Medium,
        SPOILT_US.. => Severity::High,
    };
    let (name, latency) = (&state.name, state.latency_us);
    let held = match machine.processor.idle.cpu_dma_latency_us {
        Some(held) if held < UNHELD_US => format!("cpu_dma_latency is held at {held} us"),
        Some(_) => "nothing holds cpu_dma_latency".to_owned(),
        None => "whether cpu_dma_latency is held can't be seen without root".to_owned(),
    };
    let intel = machine.processor.idle.driver.as_deref() == Some("intel_idle");
    let boot = match machine.processor.arch.as_deref() {
        Some("x86_64" | "i686") if intel => "boot with `intel_idle.max_cstate=1`",
        Some("x86_64" | "i686") => "boot with `processor.max_cstate=1`",
        _ => "disable the state in /sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    };
    Verdict::new(
        severity,
        format!("idle CPUs may sleep as deep as {name}, {latency} us to wake up; {held}"),
        "A task that wakes a sleeping CPU waits for all of it, most of all when the machine has \
         little else to do.",
        format!(
            "The application should hold /dev/cpu_dma_latency open with 0 written to it; for one \
             measurement: `latlab run --set cpu_dma_latency=0`; for good: {boot}"
        ),
    )
}

/// What the kernel answers when nobody asked for less (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
const UNHELD_US: i32 = 2_000_000_000;

/// The deepest state that a CPU may enter now: not disabled, and no slower than was asked for.
fn deepest(machine: &Machine) -> Option<&IdleState> {
    let idle = &machine.processor.idle;
    let limit = idle.cpu_dma_latency_us.map_or(u64::MAX, |us| u64::try_from(us).unwrap_or(0));
    let open = idle.states.iter().filter(|state| !state.disabled && state.latency_us <= limit);
    open.max_by_key(|state| state.latency_us)
}

/// The guide: `CONFIG_CPU_IDLE` should be enabled, info.
fn no_cpuidle(machine: &Machine) -> Option<Verdict> {
    if machine.config("CONFIG_CPU_IDLE") != Some("n") || machine.hypervisor.is_some() {
        return None;
    }
    Verdict::new(
        Severity::Info,
        "the kernel does not manage idle states (CONFIG_CPU_IDLE is not set)",
        "Wake-ups are fast, but the processor runs hot, which shortens its life and can make it \
         throttle.",
        "Use a kernel with CONFIG_CPU_IDLE=y and cap the states at C1.",
    )
}

fn smt(machine: &Machine) -> Option<Verdict> {
    let threads = |core: &CpuList| core.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>();
    let mut cores: Vec<String> = Vec::new();
    for core in machine.siblings.values().filter(|core| core.len() > 1) {
        let core = threads(core).join("+");
        if !cores.contains(&core) {
            cores.push(core);
        }
    }
    if cores.is_empty() {
        return None;
    }
    Verdict::new(
        Severity::Medium,
        format!(
            "{} with several hardware threads: CPUs {}",
            count(cores.len(), "core"),
            few(&cores)
        ),
        "Two hardware threads share a core's caches and units, so that what runs on one slows \
         the other down.",
        "Leave the sibling of a real-time CPU idle, or switch siblings off: `echo off > \
         /sys/devices/system/cpu/smt/control`, or boot with `nosmt`",
    )
}

fn thermal_throttling(machine: &Machine) -> Option<Verdict> {
    let throttles = machine.counters.throttles.filter(|count| *count > 0)?;
    Verdict::new(
        Severity::High,
        format!("heat throttled CPUs {throttles} times since boot, all CPUs together"),
        "While a CPU is throttled, everything on it takes longer, at moments that only the \
         temperature decides.",
        "Cool the machine better, or lower its highest frequency until the counts in \
         /sys/devices/system/cpu/cpu*/thermal_throttle stand still.",
    )
}

fn mitigations(machine: &Machine) -> Option<Verdict> {
    let flaws = machine.processor.vulnerabilities.iter();
    let mitigated: Vec<String> = flaws
        .filter(|(_, state)| state.starts_with("Mitigation"))
        .map(|(flaw, _)| flaw.clone())
        .collect();
    if mitigated.is_empty() {
        return None;
    }
    Verdict::new(
        Severity::Info,
        format!(
            "{} of the processor mitigated: {}",
            count(mitigated.len(), "flaw"),
            few(&mitigated)
        ),
        "Entering the kernel and switching tasks costs more with mitigations; it is a steady \
         cost, not a spike.",
        "Where only trusted code runs, compare with a boot with `mitigations=off` before \
         deciding.",
    )
}

fn old_microcode(machine: &Machine) -> Option<Verdict> {
    let state = machine.processor.vulnerabilities.get("old_microcode")?;
    if !state.starts_with("Vulnerable") {
        return None;
    }
    let revision = machine.processor.microcode.as_deref().unwrap_or("of unknown revision");
    Verdict::new(
        Severity::Info,
        format!("the microcode ({revision}) is older than the newest that this kernel knows of"),
        "An update changes timings and mitigations, so that results before and after it don't \
         compare.",
        "Update the firmware or the microcode package before measuring for the record.",
    )
}

fn governors(machine: &Machine) -> impl Iterator<Item = &str> {
    machine.governor.as_deref().into_iter().flat_map(|governors| governors.split(','))
}

/// Whether a governor changes the frequency by itself. The pstate drivers have a `powersave` of
/// their own that does (Documentation/admin-guide/pm/intel_pstate.rst).
fn varies(machine: &Machine, governor: &str) -> bool {
    let driver = machine.processor.frequency.driver.as_deref();
    match governor {
        "performance" | "userspace" => false,
        "powersave" => matches!(driver, Some("intel_pstate" | "amd-pstate-epp")),
        _ => true,
    }
}

/// Whether the governor has nothing to choose from.
fn is_pinned(machine: &Machine) -> bool {
    let frequency = &machine.processor.frequency;
    frequency.min_khz.is_some() && frequency.min_khz == frequency.max_khz
}

fn range(machine: &Machine) -> String {
    let frequency = &machine.processor.frequency;
    match (frequency.min_khz, frequency.max_khz) {
        (Some(min), Some(max)) => format!(" between {} and {} MHz", min / 1000, max / 1000),
        _ => String::new(),
    }
}
