//! Whether CPUs that were set aside are really left alone.

use super::{Check, Severity, Verdict, named};
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

fn isolated_sibling(machine: &Machine) -> Option<Verdict> {
    let isolated = isolated(machine)?;
    let threads = |cpu| machine.siblings.get(&cpu).into_iter().flat_map(CpuList::iter);
    let beside: CpuList =
        isolated.iter().flat_map(threads).filter(|cpu| !isolated.contains(*cpu)).collect();
    if beside.is_empty() {
        return None;
    }
    Verdict::new(
        Severity::High,
        format!(
            "cores of isolated {} are shared with {}, outside the isolation",
            named(isolated),
            named(&beside)
        ),
        "Whatever runs on the sibling takes half of the core away from the isolated CPU.",
        format!(
            "Isolate {} as well and let nothing run there, or take siblings offline: `echo 0 > \
             /sys/devices/system/cpu/cpuN/online`",
            named(&beside)
        ),
    )
}

fn isolated_interrupts(machine: &Machine) -> Option<Verdict> {
    let isolated = isolated(machine)?;
    let affinity = machine.isolation.irq_affinity.as_ref()?;
    let hit: CpuList = isolated.iter().filter(|cpu| affinity.contains(*cpu)).collect();
    if hit.is_empty() {
        return None;
    }
    let others = machine.cpus.minus(isolated);
    Verdict::new(
        Severity::Medium,
        format!(
            "new interrupts may go to isolated {} (/proc/irq/default_smp_affinity)",
            named(&hit)
        ),
        "Isolation keeps tasks away, not the interrupts of devices that are set up later.",
        format!("Boot with `irqaffinity={others}`, and check /proc/irq/*/smp_affinity_list"),
    )
}

fn isolated_callbacks(machine: &Machine) -> Option<Verdict> {
    let isolated = isolated(machine)?;
    let bare = isolated.minus(machine.isolation.rcu_nocbs.as_ref()?);
    if bare.is_empty() {
        return None;
    }
    Verdict::new(
        Severity::Medium,
        format!("RCU callbacks run on isolated {}", named(&bare)),
        "Freeing what the kernel no longer needs then happens in softirqs on the isolated CPU, \
         in batches of any length.",
        format!("Boot with `rcu_nocbs={isolated}`, in a kernel with CONFIG_RCU_NOCB_CPU=y"),
    )
}

fn isolated_ticks(machine: &Machine) -> Option<Verdict> {
    let isolated = isolated(machine)?;
    let ticking = isolated.minus(machine.isolation.nohz_full.as_ref()?);
    if ticking.is_empty() {
        return None;
    }
    Verdict::new(
        Severity::Info,
        format!("the tick of isolated {} goes on (no nohz_full=)", named(&ticking)),
        "For periodic tasks a steady tick is better; a task that computes for long is \
         interrupted by each.",
        format!("Only for long computations: boot with `nohz_full={isolated}`"),
    )
}

fn irqbalance(machine: &Machine) -> Option<Verdict> {
    if machine.isolation.irqbalance != Some(true) {
        return None;
    }
    let (severity, what) = match isolated(machine) {
        Some(isolated) => {
            (Severity::Medium, format!("irqbalance runs beside isolated {}", named(isolated)))
        }
        None => (Severity::Info, "irqbalance runs".to_owned()),
    };
    Verdict::new(
        severity,
        what,
        "It moves interrupts between CPUs every ten seconds and undoes affinities set by hand; \
         it spares CPUs isolated at boot, but not those of cpusets.",
        "`systemctl stop irqbalance`, or set `IRQBALANCE_BANNED_CPULIST` for it.",
    )
}
