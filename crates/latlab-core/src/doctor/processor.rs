//! The processor: frequencies, idle states, SMT, temperature, vulnerabilities.

use super::{Check, Diagnosis, Severity, count, few};
use crate::cpulist::CpuList;
use crate::machine::{IdleState, Machine};
use crate::remedy;
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[
    ("governor", governor),
    ("lowest-frequency", lowest_frequency),
    ("other-governors", other_governors),
    ("no-cpufreq", missing_cpufreq),
    ("boost", boost),
    ("deep-idle", deep_idle),
    ("no-cpuidle", missing_cpuidle),
    ("smt", smt),
    ("thermal-throttling", thermal_throttling),
    ("cooling", cooling),
    ("mitigations", mitigations),
    ("old-microcode", old_microcode),
];

/// The guide: the frequency must be constant, for which `performance` is the simplest way; high.
fn governor(machine: &Machine) -> Option<Diagnosis> {
    let varying: BTreeSet<&str> =
        governors(machine).filter(|governor| varies(machine, governor)).collect();
    if varying.is_empty() || is_pinned(machine) {
        return None;
    }
    let varying = varying.into_iter().collect::<Vec<_>>().join(" and ");
    Diagnosis::new(
        Severity::High,
        format!("the governor {varying} varies the CPU frequency{}", range(machine)),
        "An idle CPU is slow when its task wakes, and each change of the frequency takes time.",
        remedy::CONSTANT_FREQUENCY,
    )
}

/// A constant lowest frequency is slow, but deterministic.
fn lowest_frequency(machine: &Machine) -> Option<Diagnosis> {
    let lowest = governors(machine).any(|governor| governor == "powersave");
    if !lowest || varies(machine, "powersave") || is_pinned(machine) {
        return None;
    }
    let min = machine.processor.frequency.min_khz;
    let min = min.map_or(String::new(), |khz| format!(", {} MHz", khz / 1000));
    Diagnosis::new(
        Severity::Info,
        format!("the governor powersave keeps the CPU at its lowest frequency{min}"),
        "Latencies are steady, but longer than they need to be.",
        remedy::CONSTANT_FREQUENCY,
    )
}

/// The guide: governors other than performance, medium.
fn other_governors(machine: &Machine) -> Option<Diagnosis> {
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
    Diagnosis::new(
        Severity::Medium,
        format!("other governors than the active one are available: {}", few(&others)),
        "A power daemon or a user can change the governor at any time, and all latencies with it.",
        "Stop power-profiles-daemon, tuned or tlp while measuring; for a product, build the kernel \
         without these governors.",
    )
}

/// The guide: `CONFIG_CPU_FREQ` should be enabled, high. For a guest, the host controls it.
fn missing_cpufreq(machine: &Machine) -> Option<Diagnosis> {
    if machine.config("CONFIG_CPU_FREQ") != Some("n") || machine.hypervisor.is_some() {
        return None;
    }
    Diagnosis::new(
        Severity::High,
        "the kernel cannot set the CPU frequency (CONFIG_CPU_FREQ is not set)",
        "The CPU keeps the frequency set by the boot loader, which may not be the highest.",
        "Use a kernel with CONFIG_CPU_FREQ=y and the governor performance, or make sure that the \
         boot loader sets the frequency.",
    )
}

fn boost(machine: &Machine) -> Option<Diagnosis> {
    if machine.processor.frequency.boost != Some(true) {
        return None;
    }
    Diagnosis::new(
        Severity::Info,
        "CPUs may run above their nominal frequency (boost)",
        "How far and for how long depends on the temperature and on the other CPUs, so that runs \
         differ for reasons outside them.",
        "For steady results: `latlab run --set boost=0`; permanently: `echo 0 > \
         /sys/devices/system/cpu/cpufreq/boost`, or with intel_pstate `echo 1 > \
         /sys/devices/system/cpu/intel_pstate/no_turbo`",
    )
}

/// The guide: idle states should be enabled, but limited to C1.
fn deep_idle(machine: &Machine) -> Option<Diagnosis> {
    // 10 us is noticeable for a task with a deadline of 100 us, which 100 us alone exceeds.
    const NOTICEABLE_US: u64 = 10;
    const SEVERE_US: u64 = 100;
    let state = deepest_idle_state(machine)?;
    let severity = match state.latency_us {
        ..NOTICEABLE_US => return None,
        NOTICEABLE_US..SEVERE_US => Severity::Medium,
        SEVERE_US.. => Severity::High,
    };
    let (name, latency) = (&state.name, state.latency_us);
    let request = match machine.processor.idle.cpu_dma_latency_us {
        Some(us) if us < NO_REQUEST_US => format!("cpu_dma_latency is limited to {us} us"),
        Some(_) => "cpu_dma_latency is not limited".to_owned(),
        None => "cpu_dma_latency cannot be read without root".to_owned(),
    };
    let intel = machine.processor.idle.driver.as_deref() == Some("intel_idle");
    let boot = match machine.processor.arch.as_deref() {
        Some("x86_64" | "i686") if intel => "boot with `intel_idle.max_cstate=1`",
        Some("x86_64" | "i686") => "boot with `processor.max_cstate=1`",
        _ => "disable the state in /sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    };
    Diagnosis::new(
        severity,
        format!("idle CPUs may enter {name}, with an exit latency of {latency} us; {request}"),
        "A wake-up on an idle CPU takes longer by the exit latency, most often on a machine with \
         little other load. cyclictest does not show it: it holds /dev/cpu_dma_latency at 0 by \
         default.",
        remedy::sentence(remedy::LIMIT_IDLE_STATES) + "; permanently: " + boot,
    )
}

/// The kernel's value without any request (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`).
const NO_REQUEST_US: i32 = 2_000_000_000;

/// Returns the deepest idle state that a CPU may enter now: enabled, and within the requested
/// latency (`/dev/cpu_dma_latency`). None without cpuidle.
pub fn deepest_idle_state(machine: &Machine) -> Option<&IdleState> {
    let idle = &machine.processor.idle;
    let limit = idle.cpu_dma_latency_us.map_or(u64::MAX, |us| u64::try_from(us).unwrap_or(0));
    let open = idle.states.iter().filter(|state| !state.disabled && state.latency_us <= limit);
    open.max_by_key(|state| state.latency_us)
}

/// The guide: `CONFIG_CPU_IDLE` should be enabled, info.
fn missing_cpuidle(machine: &Machine) -> Option<Diagnosis> {
    if machine.config("CONFIG_CPU_IDLE") != Some("n") || machine.hypervisor.is_some() {
        return None;
    }
    Diagnosis::new(
        Severity::Info,
        "the kernel does not manage idle states (CONFIG_CPU_IDLE is not set)",
        "Wake-ups are fast, but the processor gets hotter, which shortens its life and may cause \
         throttling.",
        "Use a kernel with CONFIG_CPU_IDLE=y and limit the states to C1.",
    )
}

fn smt(machine: &Machine) -> Option<Diagnosis> {
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
    Diagnosis::new(
        Severity::Medium,
        format!(
            "{} with several hardware threads (SMT): CPUs {}",
            count(cores.len(), "core"),
            few(&cores)
        ),
        "The hardware threads of a core share its caches and execution units, so that they slow \
         each other down.",
        "Keep the sibling of a real-time CPU idle, or disable SMT: `echo off > \
         /sys/devices/system/cpu/smt/control`, or boot with `nosmt`",
    )
}

fn thermal_throttling(machine: &Machine) -> Option<Diagnosis> {
    let throttles = machine.counters.throttles.filter(|count| *count > 0)?;
    Diagnosis::new(
        Severity::High,
        format!("{throttles} thermal throttling events since boot, on all CPUs together"),
        "Everything takes longer on a throttled CPU, at times that depend on the temperature only.",
        "Improve cooling, or lower the maximum frequency until the counters in \
         /sys/devices/system/cpu/cpu*/thermal_throttle no longer grow.",
    )
}

/// Only x86 counts its thermal throttling; elsewhere the state of cooling devices shows it.
fn cooling(machine: &Machine) -> Option<Diagnosis> {
    let devices = &machine.processor.cooling;
    if devices.is_empty() {
        return None;
    }
    Diagnosis::new(
        Severity::High,
        format!("CPUs are slowed down now because of their temperature: {}", few(devices)),
        "Everything takes longer on a CPU that is cooled in this way, at times that depend on the \
         temperature only.",
        "Improve cooling, or lower the maximum frequency until the `cur_state` of these devices in \
         /sys/class/thermal stays 0.",
    )
}

fn mitigations(machine: &Machine) -> Option<Diagnosis> {
    let flaws = machine.processor.vulnerabilities.iter();
    let mitigated: Vec<String> = flaws
        .filter(|(_, state)| state.starts_with("Mitigation"))
        .map(|(flaw, _)| flaw.clone())
        .collect();
    if mitigated.is_empty() {
        return None;
    }
    Diagnosis::new(
        Severity::Info,
        format!("mitigations of CPU vulnerabilities are active: {}", few(&mitigated)),
        "Mitigations make kernel entry and context switches slower; the cost is constant, not a \
         spike.",
        "If all code is trusted, compare with a boot with `mitigations=off` before deciding.",
    )
}

fn old_microcode(machine: &Machine) -> Option<Diagnosis> {
    let state = machine.processor.vulnerabilities.get("old_microcode")?;
    if !state.starts_with("Vulnerable") {
        return None;
    }
    let revision = machine.processor.microcode.as_deref().unwrap_or("of unknown revision");
    Diagnosis::new(
        Severity::Info,
        format!("the microcode ({revision}) is older than the newest that this kernel knows of"),
        "An update changes timings and mitigations: results before and after it are not \
         comparable.",
        "Update the firmware or the microcode package before measuring.",
    )
}

fn governors(machine: &Machine) -> impl Iterator<Item = &str> {
    machine.governor.as_deref().into_iter().flat_map(|governors| governors.split(','))
}

/// Whether a governor changes the frequency at run time. The pstate drivers have their own
/// `powersave`, which does (Documentation/admin-guide/pm/intel_pstate.rst).
fn varies(machine: &Machine, governor: &str) -> bool {
    let driver = machine.processor.frequency.driver.as_deref();
    match governor {
        "performance" | "userspace" => false,
        "powersave" => matches!(driver, Some("intel_pstate" | "amd-pstate-epp")),
        _ => true,
    }
}

/// Whether the frequency range is a single frequency.
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
