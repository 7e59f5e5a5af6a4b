//! The platform below the kernel: hypervisor, firmware, graphics.

use super::{Check, Diagnosis, Severity, few};
use crate::machine::Machine;
use crate::remedy;

pub(super) const CHECKS: &[Check] = &[
    ("hypervisor", hypervisor),
    ("steal", steal),
    ("efi-runtime", efi_runtime),
    ("system-management", system_management),
    ("firmware", firmware),
    ("graphics", graphics),
];

fn hypervisor(machine: &Machine) -> Option<Diagnosis> {
    let hypervisor = machine.hypervisor.as_deref()?;
    Diagnosis::new(
        Severity::High,
        format!("this is a virtual machine (hypervisor: {hypervisor})"),
        "The host may preempt a virtual CPU at any time and for any length of time, which looks \
         like slow hardware and need not be reported as steal time.",
        "Measure on bare metal; or give each virtual CPU a dedicated host CPU with real-time \
         priority, and lock the guest's memory on the host.",
    )
}

fn steal(machine: &Machine) -> Option<Diagnosis> {
    // USER_HZ is 100 on every architecture that Linux still has.
    const TICK_MS: u64 = 10;
    let ticks = machine.counters.steal_ticks.filter(|ticks| *ticks > 0)?;
    let stolen_ms = ticks.saturating_mul(TICK_MS);
    let cpus = u64::try_from(machine.cpus.len()).unwrap_or(u64::MAX);
    let up_s = machine.counters.uptime_s.unwrap_or(0).saturating_mul(cpus);
    // One in a thousand: milliseconds of the one are compared with seconds of the other.
    let often = up_s > 0 && stolen_ms >= up_s;
    Diagnosis::new(
        if often { Severity::High } else { Severity::Medium },
        format!("steal time since boot: {}.{:02} s", stolen_ms / 1000, stolen_ms % 1000 / 10),
        "During that time virtual CPUs were runnable, but the host ran something else.",
        remedy::sentence(remedy::PIN_VIRTUAL_CPUS) + ".",
    )
}

/// The guide: `CONFIG_EFI_DISABLE_RUNTIME` should be enabled, medium.
fn efi_runtime(machine: &Machine) -> Option<Diagnosis> {
    if machine.efi_runtime != Some(true) {
        return None;
    }
    Diagnosis::new(
        Severity::Medium,
        "the kernel calls the firmware at run time (EFI runtime services)",
        "A call, such as reading a boot variable, can disable interrupts for an unbounded time, on \
         some machines on all CPUs.",
        "Boot with `efi=noruntime`; or restrict the calls to one CPU with \
         `/sys/devices/virtual/workqueue/efi_runtime/cpumask`",
    )
}

fn system_management(machine: &Machine) -> Option<Diagnosis> {
    let interrupts = machine.counters.smi.filter(|count| *count > 0)?;
    Diagnosis::new(
        Severity::Info,
        format!("{interrupts} system management interrupts (SMI) on CPU 0 since power-on"),
        "In system management mode the firmware stops the kernel, which cannot notice it.",
        "If the count grows during a measurement, disable its source in the firmware setup: USB \
         legacy support, memory scrubbing, power capping.",
    )
}

/// Says why nothing shows whether the firmware takes the CPU. On x86 it does so in system management
/// mode, which some processors count; on arm64 in calls of PSCI and OP-TEE, and in interrupts of the
/// secure world, which none counts.
fn firmware(machine: &Machine) -> Option<Diagnosis> {
    let arch = machine.processor.arch.as_deref()?;
    let reason = match (arch, machine.hypervisor.is_some()) {
        (_, true) => "in a virtual machine it looks like time of the host",
        ("x86_64", _) if machine.counters.smi.is_some() => return None,
        ("x86_64", _) => {
            "the count of system management interrupts can't be read, which needs an Intel \
             processor, the module msr and root"
        }
        _ => "this architecture has no counter for it",
    };
    let parts = match machine.firmware.as_slice() {
        [] => String::new(),
        names => format!(" ({})", few(names)),
    };
    let rest = if machine.hypervisor.is_some() {
        "no event are the host's, which may count them as stolen or not, or what its firmware and \
         hardware take from it. `latlab explain noise` on the host tells more."
    } else {
        "no event are the firmware's or the hardware's. The kernel's tracer hwlat looks for them with \
         interrupts disabled (`CONFIG_HWLAT_TRACER`)."
    };
    Diagnosis::new(
        Severity::Info,
        format!("time taken by the firmware{parts} is not seen on this machine: {reason}"),
        "While the firmware runs, the kernel gets no interrupt and records nothing.",
        format!(
            "Without other load, `latlab explain noise` lists what takes time from a busy loop: gaps \
             with {rest}"
        ),
    )
}

/// The guide: `CONFIG_DRM`, info. Drivers that were measured to be worse are medium: tuned#719
/// reports 1 ms by i915's power management, `LinuxCNC`#4087 twice amdgpu's latency with i915.
fn graphics(machine: &Machine) -> Option<Diagnosis> {
    const WORSE: &[&str] = &["i915", "nvidia"];
    const OTHERS: &[&str] = &["xe", "amdgpu", "radeon", "nouveau", "zynqmp-dpsub", "vmwgfx"];
    let used = |drivers: &[&str]| -> Vec<String> {
        let of = |driver: &&String| drivers.contains(&driver.as_str());
        machine.gpu_drivers.iter().filter(of).cloned().collect()
    };
    let worse = used(WORSE);
    if !worse.is_empty() {
        return Diagnosis::new(
            Severity::Medium,
            format!("graphics driver in use: {}", few(&worse)),
            "It is known to disable interrupts or to saturate the memory bus for hundreds of \
             microseconds, especially when it saves power.",
            "Measure without a display server; with i915, boot with `i915.enable_dc=0 \
             i915.enable_psr=0`; if the driver is not needed, blacklist the module.",
        );
    }
    let others = used(OTHERS);
    if others.is_empty() {
        return None;
    }
    Diagnosis::new(
        Severity::Info,
        format!("graphics driver in use: {}", few(&others)),
        "A graphics processor may share the last-level cache and the memory bus with the CPUs, and \
         slow them down under load.",
        "Measure with the graphics load of the product.",
    )
}
