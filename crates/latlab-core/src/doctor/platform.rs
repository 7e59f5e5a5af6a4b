//! What lies under and beside the kernel: hypervisor, firmware, graphics.

use super::{Check, Severity, Verdict, few};
use crate::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    ("hypervisor", hypervisor),
    ("steal", steal),
    ("efi-runtime", efi_runtime),
    ("system-management", system_management),
    ("graphics", graphics),
];

fn hypervisor(machine: &Machine) -> Option<Verdict> {
    let hypervisor = machine.hypervisor.as_deref()?;
    Verdict::new(
        Severity::High,
        format!("this is a virtual machine (hypervisor: {hypervisor})"),
        "The host may take a CPU away at any moment and for any time, which looks like slow \
         hardware from here and need not show up as steal time.",
        "Measure on the bare machine; or give each virtual CPU a host CPU of its own with \
         real-time priority, and lock the guest's memory on the host.",
    )
}

fn steal(machine: &Machine) -> Option<Verdict> {
    // USER_HZ is 100 on every architecture that Linux still has.
    const TICK_MS: u64 = 10;
    let ticks = machine.counters.steal_ticks.filter(|ticks| *ticks > 0)?;
    let stolen_ms = ticks.saturating_mul(TICK_MS);
    let cpus = u64::try_from(machine.cpus.len()).unwrap_or(u64::MAX);
    let up_s = machine.counters.uptime_s.unwrap_or(0).saturating_mul(cpus);
    // One in a thousand, for the milliseconds of one are the seconds of the other.
    let often = up_s > 0 && stolen_ms >= up_s;
    Verdict::new(
        if often { Severity::High } else { Severity::Medium },
        format!(
            "the host gave {}.{:02} s of this machine's CPU time to others since boot",
            stolen_ms / 1000,
            stolen_ms % 1000 / 10
        ),
        "For that long tasks here were ready to run and stood still.",
        "On the host, pin the virtual CPUs to CPUs that nobody else uses.",
    )
}

/// The guide: `CONFIG_EFI_DISABLE_RUNTIME` should be enabled, medium.
fn efi_runtime(machine: &Machine) -> Option<Verdict> {
    if machine.efi_runtime != Some(true) {
        return None;
    }
    Verdict::new(
        Severity::Medium,
        "the kernel calls the firmware at run time (EFI runtime services)",
        "A call, such as reading a boot variable, can keep interrupts off for as long as the \
         firmware likes, on some machines on all CPUs.",
        "Boot with `efi=noruntime`; or keep the calls on one CPU with \
         `/sys/devices/virtual/workqueue/efi_runtime/cpumask`",
    )
}

fn system_management(machine: &Machine) -> Option<Verdict> {
    let interrupts = machine.counters.smi.filter(|count| *count > 0)?;
    Verdict::new(
        Severity::Info,
        format!("the firmware has interrupted CPU 0 {interrupts} times since power-on (SMI)"),
        "In system management mode nothing else runs, and the kernel does not even notice.",
        "If the count grows while a measurement runs, turn off what causes it in the firmware's \
         setup: USB legacy support, memory scrubbing, power capping.",
    )
}

/// The guide: `CONFIG_DRM`, info. Drivers that people have measured to be worse are medium:
/// tuned#719 has i915's power management at 1 ms, `LinuxCNC`#4087 i915 at twice amdgpu's latency.
fn graphics(machine: &Machine) -> Option<Verdict> {
    const WORSE: &[&str] = &["i915", "nvidia"];
    const OTHERS: &[&str] = &["xe", "amdgpu", "radeon", "nouveau", "zynqmp-dpsub", "vmwgfx"];
    let used = |drivers: &[&str]| -> Vec<String> {
        let of = |driver: &&String| drivers.contains(&driver.as_str());
        machine.gpu_drivers.iter().filter(of).cloned().collect()
    };
    let worse = used(WORSE);
    if !worse.is_empty() {
        return Verdict::new(
            Severity::Medium,
            format!("graphics driver in use: {}", few(&worse)),
            "It is known to keep interrupts off or the memory bus busy for hundreds of \
             microseconds, most of all when it saves power.",
            "Measure without a display server; with i915, boot with `i915.enable_dc=0 \
             i915.enable_psr=0`; if it is not needed, keep the module from loading.",
        );
    }
    let others = used(OTHERS);
    if others.is_empty() {
        return None;
    }
    Verdict::new(
        Severity::Info,
        format!("graphics driver in use: {}", few(&others)),
        "A graphics processor can share the last-level cache and the memory bus with the CPUs, \
         and slow them down when it is busy.",
        "Measure with the graphics load that the product will have.",
    )
}
