//! The kernel: its release, clock sources, tracer, lockdown, and drivers with a known latency.

use crate::root::Root;
use latlab_core::machine::Machine;

const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";

pub(super) fn read(root: &Root, machine: &mut Machine) {
    machine.kernel = root.text("proc/sys/kernel/osrelease").unwrap_or_default();
    machine.version = root.word("proc/sys/kernel/version");
    machine.cmdline = root.text("proc/cmdline").unwrap_or_default();
    machine.hz = machine.config.get("CONFIG_HZ").and_then(|hz| hz.parse().ok());
    machine.clocksource = root.word(format!("{CLOCK}/current_clocksource"));
    machine.clocksources = root.words(format!("{CLOCK}/available_clocksource"));
    machine.clocksources.retain(|other| machine.clocksource.as_ref() != Some(other));
    // Not through debugfs: entering its folder `tracing` would mount tracefs.
    machine.tracer = root.word("sys/kernel/tracing/current_tracer");
    machine.lockdown = root.chosen("sys/kernel/security/lockdown");
    machine.gpu_drivers = gpu_drivers(root);
    machine.efi_runtime = efi_runtime(root, machine);
    machine.firmware = firmware(root);
}

/// The firmware that the device tree names (Documentation/devicetree/bindings/arm/psci.yaml and
/// bindings/firmware). Each runs on the CPUs in a mode in which the kernel gets no interrupt.
fn firmware(root: &Root) -> Vec<String> {
    const NODES: [(&str, &str); 4] = [
        ("psci", "psci"),
        ("optee", "firmware/optee"),
        ("scmi", "firmware/scmi"),
        ("sdei", "firmware/sdei"),
    ];
    let present = |(_, node): &&(&str, &str)| root.has(format!("proc/device-tree/{node}"));
    NODES.iter().filter(present).map(|(name, _)| (*name).to_owned()).collect()
}

/// The drivers of the graphics cards.
fn gpu_drivers(root: &Root) -> Vec<String> {
    let mut drivers: Vec<String> = root
        .numbered("sys/class/drm", "card")
        .iter()
        .filter_map(|(_, card)| {
            let uevent = root.text(format!("sys/class/drm/{card}/device/uevent"))?;
            uevent.lines().find_map(|line| Some(line.strip_prefix("DRIVER=")?.to_owned()))
        })
        .collect();
    // NVIDIA's own driver has an entry there only with its DRM module.
    if root.has("proc/driver/nvidia/version") {
        drivers.push("nvidia".to_owned());
    }
    drivers.sort();
    drivers.dedup();
    drivers
}

/// Whether EFI runtime services are in use. Their workqueue shows it; on kernels that do not show
/// workqueues, it follows from the command line and the configuration
/// (Documentation/core-api/real-time/hardware.rst).
fn efi_runtime(root: &Root, machine: &Machine) -> Option<bool> {
    if root.has("sys/devices/virtual/workqueue/efi_runtime") {
        return Some(true);
    }
    if !root.has("sys/firmware/efi") {
        return root.has("sys/firmware").then_some(false);
    }
    match machine.boot_parameter("efi") {
        Some(options) if options.split(',').any(|option| option == "noruntime") => Some(false),
        Some(options) if options.split(',').any(|option| option == "runtime") => Some(true),
        _ => machine.config("CONFIG_EFI_DISABLE_RUNTIME").map(|disabled| disabled != "y"),
    }
}
