//! Counters that only grow while the machine is up.

use crate::root::Root;
use latlab_core::machine::{Counters, Machine};

/// Reads the counters of a machine whose state was read before.
pub fn read(root: &Root, machine: &Machine) -> Counters {
    Counters {
        uptime_s: uptime_s(root),
        steal_ticks: steal_ticks(root),
        throttles: throttles(root, machine),
        smi: smi(root, machine, 0),
    }
}

fn uptime_s(root: &Root) -> Option<u64> {
    let text = root.text("proc/uptime")?;
    text.split('.').next()?.parse().ok()
}

/// Steal time of all CPUs together, in ticks: the eighth number of the first line (`proc_stat(5)`).
fn steal_ticks(root: &Root) -> Option<u64> {
    let text = root.text("proc/stat")?;
    eighth(text.lines().next()?.strip_prefix("cpu ")?)
}

/// Thermal throttling events of all CPUs, counted per core and per package.
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

/// Steal time of a CPU, in ticks: the hypervisor ran others while this CPU had work.
pub fn steal_ticks_of(root: &Root, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu} ");
    let text = root.text("proc/stat")?;
    eighth(text.lines().find_map(|line| line.strip_prefix(&name))?)
}

fn eighth(numbers: &str) -> Option<u64> {
    numbers.split_whitespace().nth(7)?.parse().ok()
}

/// The number of system management interrupts of a CPU (`MSR_SMI_COUNT`). Only Intel processors
/// have this register, and hypervisors do not emulate it correctly.
pub fn smi(root: &Root, machine: &Machine, cpu: u32) -> Option<u64> {
    let info = root.text("proc/cpuinfo")?;
    let intel = info.contains("GenuineIntel") && machine.hypervisor.is_none();
    intel.then(|| root.word_at(format!("dev/cpu/{cpu}/msr"), 0x34)).flatten()
}
