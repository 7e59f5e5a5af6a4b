//! Memory management that runs in the background.

use super::{Check, Diagnosis, Severity};
use crate::machine::Machine;
use crate::remedy;

pub(super) const CHECKS: &[Check] = &[
    ("transparent-hugepage", transparent_hugepage),
    ("ksm", ksm),
    ("swap", swap),
    ("stat-interval", stat_interval),
];

fn transparent_hugepage(machine: &Machine) -> Option<Diagnosis> {
    if machine.memory.transparent_hugepage.as_deref() != Some("always") {
        return None;
    }
    Diagnosis::new(
        Severity::Medium,
        "transparent huge pages are used for all memory (transparent_hugepage is 'always')",
        "A page fault may have to compact memory first, and khugepaged moves pages of running \
         tasks.",
        "`echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`; for one measurement: \
         `latlab run --set transparent_hugepage=madvise`",
    )
}

fn ksm(machine: &Machine) -> Option<Diagnosis> {
    if machine.memory.ksm != Some(1) {
        return None;
    }
    Diagnosis::new(
        Severity::Medium,
        "kernel same-page merging (KSM) is on (/sys/kernel/mm/ksm/run is 1)",
        "Comparing pages takes CPU time and memory bandwidth, and a write to a merged page faults.",
        "`echo 0 > /sys/kernel/mm/ksm/run`; for one measurement: `latlab run --set ksm=0`",
    )
}

fn swap(machine: &Machine) -> Option<Diagnosis> {
    let size = machine.memory.swap_kib.filter(|size| *size > 0)?;
    let used = machine.memory.swap_used_kib.unwrap_or(0);
    let swappiness = machine.memory.swappiness;
    let swappiness = swappiness.map_or(String::new(), |value| format!(", swappiness {value}"));
    Diagnosis::new(
        Severity::Medium,
        format!("{} MiB of swap, {} MiB in use{swappiness}", size / 1024, used / 1024),
        "Memory that is not locked may have to be read from disk, which takes milliseconds.",
        remedy::sentence(remedy::LOCK_MEMORY)
            + ", or `swapoff -a`; for one measurement: `latlab run --set swappiness=0`",
    )
}

fn stat_interval(machine: &Machine) -> Option<Diagnosis> {
    const SELDOM_S: u32 = 10;
    let every = machine.memory.stat_interval.filter(|seconds| *seconds < SELDOM_S)?;
    Diagnosis::new(
        Severity::Info,
        format!("each CPU updates its memory statistics every {every} s (vm.stat_interval)"),
        "A kernel worker updates them on every CPU whose counters changed, isolated CPUs included.",
        "`sysctl vm.stat_interval=10`; for one measurement: `latlab run --set stat_interval=10`",
    )
}
