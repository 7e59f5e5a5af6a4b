//! Clocks, timers and the tick.

use super::{Check, Diagnosis, Severity, named};
use crate::machine::Machine;
use crate::remedy;

pub(super) const CHECKS: &[Check] = &[
    ("coarse-timers", coarse_timers),
    ("slow-clocksource", slow_clocksource),
    ("tick-rate", tick_rate),
    ("tick-stops-when-idle", tick_stops_when_idle),
    ("nohz-full", nohz_full),
];

fn coarse_timers(machine: &Machine) -> Option<Diagnosis> {
    // The resolution that the kernel reports counts; else its configuration and command line.
    let coarse = match machine.timer_resolution_ns {
        Some(resolution) => resolution > 1,
        None => {
            machine.boot_parameter("highres") == Some("off")
                || machine.config("CONFIG_HIGH_RES_TIMERS") == Some("n")
        }
    };
    if !coarse {
        return None;
    }
    let resolution = match (machine.timer_resolution_ns, machine.hz) {
        (Some(nanos), _) => format!(": timers have a resolution of {} us", nanos / 1000),
        (None, Some(hz)) if hz > 0 => {
            format!(": timers have a resolution of {} us", 1_000_000 / hz)
        }
        _ => String::new(),
    };
    Diagnosis::new(
        Severity::Fatal,
        format!("high-resolution timers are off{resolution}"),
        "Timers expire at ticks only: periods shorter than a tick are impossible, and every \
         wake-up is up to one tick late.",
        remedy::sentence(remedy::HIGH_RESOLUTION)
            + "; `dmesg` says if the clock event device is unsuitable.",
    )
}

/// Only x86 has clocksources whose cost differs that much.
fn slow_clocksource(machine: &Machine) -> Option<Diagnosis> {
    let clock = machine.clocksource.as_deref()?;
    let x86 = matches!(machine.processor.arch.as_deref(), Some("x86_64" | "i686"));
    if !x86 || clock == "tsc" {
        return None;
    }
    // These are read in the vDSO as well, and corrected for the hypervisor.
    let paravirtual = matches!(clock, "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen");
    let remedy = if machine.clocksources.iter().any(|other| other == "tsc") {
        "`echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource`"
    } else {
        "`dmesg | grep -i tsc` says why the kernel rejected the TSC; if it is known to be stable, \
         boot with `tsc=reliable`."
    };
    if paravirtual {
        return Diagnosis::new(
            Severity::Info,
            format!("the clocksource is {clock}"),
            "It is read without a system call, but more slowly than the TSC, since the \
             hypervisor's corrections are applied.",
            remedy,
        );
    }
    Diagnosis::new(
        Severity::High,
        format!("the clocksource is {clock}, not tsc"),
        "Every reading of the clock is a system call and a slow device access, which delays the \
         task and distorts every measurement.",
        remedy,
    )
}

fn tick_rate(machine: &Machine) -> Option<Diagnosis> {
    let hz = machine.hz.filter(|hz| (1..1000).contains(hz))?;
    Diagnosis::new(
        Severity::Info,
        format!("the tick rate is {hz} Hz, one tick every {} us", 1_000_000 / hz),
        "Time slices of SCHED_OTHER tasks, and timeouts inside the kernel, are multiples of a \
         tick; high-resolution timers and real-time tasks do not depend on it.",
        "No action for real-time tasks; for SCHED_OTHER consider a kernel with CONFIG_HZ=1000.",
    )
}

/// The guide: `CONFIG_NO_HZ`, medium.
fn tick_stops_when_idle(machine: &Machine) -> Option<Diagnosis> {
    let built = ["CONFIG_NO_HZ_IDLE", "CONFIG_NO_HZ_FULL"];
    let option = built.into_iter().find(|option| machine.has_config(option))?;
    if machine.boot_parameter("nohz") == Some("off") {
        return None;
    }
    Diagnosis::new(
        Severity::Medium,
        format!("idle CPUs stop their tick ({option}=y)"),
        "Stopping and restarting the tick adds work to every entry into and exit from idle, which \
         a periodic task incurs in every period.",
        "Boot with `nohz=off` if periodic tasks matter more than power consumption.",
    )
}

/// The guide: `CONFIG_NO_HZ_FULL`, medium, with opposite advice for two kinds of work.
fn nohz_full(machine: &Machine) -> Option<Diagnosis> {
    let cpus = machine.isolation.nohz_full.as_ref().filter(|cpus| !cpus.is_empty())?;
    if let Some(clock) = unstable_clock(machine) {
        return Diagnosis::new(
            Severity::High,
            format!(
                "the tick of {} does not stop (nohz_full, with the clock {clock})",
                named(cpus)
            ),
            "The kernel keeps the tick where its clock, the TSC, is not stable: long computations are \
             interrupted by every tick, and every entry into the kernel does more accounting.",
            "`dmesg | grep -i tsc` says why the TSC is not stable; if it is known to be stable, boot \
             with `tsc=reliable`; else boot without `nohz_full=`.",
        );
    }
    Diagnosis::new(
        Severity::Medium,
        format!("the tick of {} may stop even while a task runs (nohz_full)", named(cpus)),
        "Every entry into the kernel does more accounting on these CPUs: slower for periodic \
         tasks, better for long computations without system calls; `latlab run noise` shows whether \
         the tick stops.",
        "For control loops, boot without `nohz_full=`; for long computations, keep it.",
    )
}

/// The clocksource of an x86 machine whose TSC the kernel does not trust, so that its scheduler clock is
/// not stable (`TICK_DEP_BIT_CLOCK_UNSTABLE`, `include/linux/tick.h`). A hypervisor's clock is.
fn unstable_clock(machine: &Machine) -> Option<&str> {
    let x86 = matches!(machine.processor.arch.as_deref(), Some("x86_64" | "i686"));
    let untrusted = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"];
    machine.clocksource.as_deref().filter(|clock| x86 && untrusted.contains(clock))
}
