//! What only grows while the machine is up.

use crate::root::Root;
use latlab_core::machine::{Counters, Machine};

/// The counters of a machine whose state was read before.
pub fn read(root: &Root, machine: &Machine) -> Counters {
    Counters {
        uptime_s: uptime_s(root),
        steal_ticks: steal_ticks(root),
        throttles: throttles(root, machine),
        smi: smi(root, machine),
    }
}

fn uptime_s(root: &Root) -> Option<u64> {
    let text = root.text("proc/uptime")?;
    text.split('.').next()?.parse().ok()
}

/// The eighth number of the first line, which sums up all CPUs (`proc_stat(5)`).
fn steal_ticks(root: &Root) -> Option<u64> {
    let text = root.text("proc/stat")?;
    let numbers = text.lines().next()?.strip_prefix("cpu ")?;
    numbers.split_whitespace().nth(7)?.parse().ok()
}

/// Of all CPUs, for being too hot themselves or in too hot a package.
fn throttles(root: &Root, machine: &Machine) -> Option<u64> {
    let counts: Vec<u64> = machine
        .cpus
        .iter()
        .flat_map(|cpu| ["core", "package"].map(|part| (cpu, part)))
        .filter_map(|(cpu, part)| {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle");
            root.number(format!("{folder}/{part}_throttle_count"))
        })
        .collect();
    (!counts.is_empty()).then(|| counts.into_iter().fold(0, u64::saturating_add))
}

/// The register is Intel's (`MSR_SMI_COUNT`), and a hypervisor does not tell the truth about it.
fn smi(root: &Root, machine: &Machine) -> Option<u64> {
    let info = root.text("proc/cpuinfo")?;
    let intel = info.contains("GenuineIntel") && machine.hypervisor.is_none();
    intel.then(|| root.word_at("dev/cpu/0/msr", 0x34)).flatten()
}
