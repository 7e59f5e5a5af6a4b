//! Clocks, timers and the tick.

use super::{Check, Severity, Verdict, named};
use crate::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    ("coarse-timers", coarse_timers),
    ("slow-clocksource", slow_clocksource),
    ("tick-rate", tick_rate),
    ("tick-stops-when-idle", tick_stops_when_idle),
    ("nohz-full", nohz_full),
];

fn coarse_timers(machine: &Machine) -> Option<Verdict> {
    // The kernel's answer counts; without it, what it was built and booted to do.
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
        (Some(nanos), _) => format!(": timers fire in steps of {} us", nanos / 1000),
        (None, Some(hz)) if hz > 0 => format!(": timers fire in steps of {} us", 1_000_000 / hz),
        _ => String::new(),
    };
    Verdict::new(
        Severity::Fatal,
        format!("high-resolution timers are off{resolution}"),
        "Every sleep ends at a tick, so that no period shorter than a tick can be kept, and every \
         wake-up is late by up to one.",
        "Boot without `highres=off`, and with a kernel that has CONFIG_HIGH_RES_TIMERS=y; `dmesg` \
         says if the clock event device was found unfit.",
    )
}

/// Only x86 has clocks to choose from that differ so much.
fn slow_clocksource(machine: &Machine) -> Option<Verdict> {
    let clock = machine.clocksource.as_deref()?;
    let x86 = matches!(machine.processor.arch.as_deref(), Some("x86_64" | "i686"));
    if !x86 || clock == "tsc" {
        return None;
    }
    // These are read through the vDSO as well, with a correction from the hypervisor.
    let paravirtual = matches!(clock, "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen");
    let remedy = if machine.clocksources.iter().any(|other| other == "tsc") {
        "`echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource`"
    } else {
        "`dmesg | grep -i tsc` says why the kernel gave the TSC up; where it is known to be \
         steady, boot with `tsc=reliable`."
    };
    if paravirtual {
        return Verdict::new(
            Severity::Info,
            format!("the clocksource is {clock}"),
            "It is read without a system call, but takes a little longer than the TSC, to apply \
             the hypervisor's corrections.",
            remedy,
        );
    }
    Verdict::new(
        Severity::High,
        format!("the clocksource is {clock}, not tsc"),
        "Every reading of the clock is a system call and a slow access to a device, which delays \
         the task and blurs every measurement.",
        remedy,
    )
}

fn tick_rate(machine: &Machine) -> Option<Verdict> {
    let hz = machine.hz.filter(|hz| (1..1000).contains(hz))?;
    Verdict::new(
        Severity::Info,
        format!("the tick comes {hz} times a second, every {} us", 1_000_000 / hz),
        "Time slices of ordinary tasks, and timeouts inside the kernel, are whole ticks; \
         high-resolution timers and real-time tasks don't depend on it.",
        "None needed for real-time tasks; if ordinary ones matter, a kernel with CONFIG_HZ=1000.",
    )
}

/// The guide: `CONFIG_NO_HZ`, medium.
fn tick_stops_when_idle(machine: &Machine) -> Option<Verdict> {
    let built = ["CONFIG_NO_HZ_IDLE", "CONFIG_NO_HZ_FULL"];
    let option = built.into_iter().find(|option| machine.has_config(option))?;
    if machine.boot_parameter("nohz") == Some("off") {
        return None;
    }
    Verdict::new(
        Severity::Medium,
        format!("idle CPUs stop their tick ({option}=y)"),
        "Stopping the tick and starting it again is work on the way into idle and out of it, \
         which a periodic task pays in every period.",
        "Boot with `nohz=off` where a periodic task matters more than power.",
    )
}

/// The guide: `CONFIG_NO_HZ_FULL`, medium, with opposite advice for two kinds of work.
fn nohz_full(machine: &Machine) -> Option<Verdict> {
    let cpus = machine.isolation.nohz_full.as_ref().filter(|cpus| !cpus.is_empty())?;
    Verdict::new(
        Severity::Medium,
        format!("the tick of {} stops even while a task runs (nohz_full)", named(cpus)),
        "Every entry into the kernel does more accounting there: a loss for periodic tasks, a \
         gain for those that compute for long without system calls.",
        "For control loops, boot without `nohz_full=`; for long computations, keep it.",
    )
}
