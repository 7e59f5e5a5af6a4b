//! Isolated CPUs: whether they are really free of other work.

use super::{Check, Diagnosis, Severity, named};
use crate::cpulist::CpuList;
use crate::machine::Machine;

pub(super) const CHECKS: &[Check] = &[
    ("isolated-sibling", isolated_sibling),
    ("isolated-interrupts", isolated_interrupts),
    ("isolated-callbacks", isolated_callbacks),
    ("isolated-ticks", isolated_ticks),
    ("irqbalance", irqbalance),
];

fn isolated(machine: &Machine) -> Option<&CpuList> {
    machine.isolation.isolated.as_ref().filter(|cpus| !cpus.is_empty())
}

fn isolated_sibling(machine: &Machine) -> Option<Diagnosis> {
    let isolated = isolated(machine)?;
    let threads = |cpu| machine.siblings.get(&cpu).into_iter().flat_map(CpuList::iter);
    let outside: CpuList =
        isolated.iter().flat_map(threads).filter(|cpu| !isolated.contains(*cpu)).collect();
    if outside.is_empty() {
        return None;
    }
    Diagnosis::new(
        Severity::High,
        format!(
            "isolated {} share cores with {}, which are not isolated",
            named(isolated),
            named(&outside)
        ),
        "Any task on the sibling takes about half of the core's throughput from the isolated CPU.",
        format!(
            "Isolate {} as well and keep them idle, or take the siblings offline: `echo 0 > \
             /sys/devices/system/cpu/cpuN/online`",
            named(&outside)
        ),
    )
}

fn isolated_interrupts(machine: &Machine) -> Option<Diagnosis> {
    let isolated = isolated(machine)?;
    let affinity = machine.isolation.irq_affinity.as_ref()?;
    let hit: CpuList = isolated.iter().filter(|cpu| affinity.contains(*cpu)).collect();
    if hit.is_empty() {
        return None;
    }
    let others = machine.cpus.minus(isolated);
    Diagnosis::new(
        Severity::Medium,
        format!(
            "new interrupts may be routed to isolated {} (/proc/irq/default_smp_affinity)",
            named(&hit)
        ),
        "Isolation keeps tasks away, but not the interrupts of devices that are set up later.",
        format!("Boot with `irqaffinity={others}`, and check /proc/irq/*/smp_affinity_list."),
    )
}

fn isolated_callbacks(machine: &Machine) -> Option<Diagnosis> {
    let isolated = isolated(machine)?;
    let bare = isolated.minus(machine.isolation.rcu_nocbs.as_ref()?);
    if bare.is_empty() {
        return None;
    }
    Diagnosis::new(
        Severity::Medium,
        format!("RCU callbacks run on isolated {}", named(&bare)),
        "Memory that the kernel frees by RCU is then freed in softirqs on the isolated CPU, in \
         batches of any length.",
        format!("Boot with `rcu_nocbs={isolated}`, with a kernel that has CONFIG_RCU_NOCB_CPU=y."),
    )
}

fn isolated_ticks(machine: &Machine) -> Option<Diagnosis> {
    let isolated = isolated(machine)?;
    let ticking = isolated.minus(machine.isolation.nohz_full.as_ref()?);
    if ticking.is_empty() {
        return None;
    }
    Diagnosis::new(
        Severity::Info,
        format!("the tick of isolated {} is not stopped (no nohz_full=)", named(&ticking)),
        "A steady tick is better for periodic tasks; long computations are interrupted by every \
         tick.",
        format!("For long computations only: boot with `nohz_full={isolated}`."),
    )
}

fn irqbalance(machine: &Machine) -> Option<Diagnosis> {
    if machine.isolation.irqbalance != Some(true) {
        return None;
    }
    let (severity, what) = match isolated(machine) {
        Some(isolated) => {
            (Severity::Medium, format!("irqbalance is running, with isolated {}", named(isolated)))
        }
        None => (Severity::Info, "irqbalance is running".to_owned()),
    };
    Diagnosis::new(
        severity,
        what,
        "It moves interrupts between CPUs every ten seconds and overrides affinities set by hand; \
         it respects CPUs isolated at boot, but not those of cpusets.",
        "`systemctl stop irqbalance`, or set its `IRQBALANCE_BANNED_CPULIST`.",
    )
}
