//! The state of a machine. Reading it changes, loads and mounts nothing, and does not fail: facts
//! that can't be read are left empty.

use crate::root::Root;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::{Machine, TimeDomain};
use std::collections::BTreeMap;

mod config;
pub mod counters;
mod hypervisor;
pub mod interrupts;
mod isolation;
mod kernel;
mod live;
mod memory;
pub(crate) mod preemption;
mod processor;
mod rights;
mod scheduling;
mod tasks;

/// Reads the state of the machine below `root`. The caller adds the cost of reading the clock,
/// which has to be measured.
pub fn read(root: &Root) -> Machine {
    let mut machine = Machine {
        cpus: root.cpulist("sys/devices/system/cpu/online").unwrap_or_default(),
        config: config::read(root),
        ..Machine::default()
    };
    kernel::read(root, &mut machine);
    preemption::read(root, &mut machine);
    machine.siblings = siblings(root, &machine.cpus);
    machine.governor = processor::governor(root, &machine.cpus);
    machine.processor = processor::read(root, &machine.cpus);
    machine.hypervisor = hypervisor::read(root);
    let tasks = tasks::read(root);
    machine.isolation = isolation::read(root, &machine);
    machine.isolation.irqbalance = tasks.as_ref().map(|tasks| tasks.irqbalance);
    machine.rt_runtime_us = root.number("proc/sys/kernel/sched_rt_runtime_us");
    machine.scheduling = scheduling::read(root, &machine, tasks);
    machine.memory = memory::read(root);
    machine.rights = rights::read(root);
    machine.counters = counters::read(root, &machine);
    if root.is_live() {
        live::read(&mut machine);
    }
    machine
}

/// The environment variable of programs in latlab's guests that has the word of the guest's
/// [`TimeDomain`].
pub const TIME_DOMAIN: &str = "LATLAB_TIME_DOMAIN";

/// What the clock of this machine counts. An environment variable says so if latlab is a program in
/// a guest.
pub fn time_domain() -> TimeDomain {
    let word = std::env::var(TIME_DOMAIN).unwrap_or_default();
    let guests = [TimeDomain::Instructions, TimeDomain::Virtualized];
    guests.into_iter().find(|domain| domain.word() == word).unwrap_or_default()
}

/// The hardware threads of each CPU's core.
fn siblings(root: &Root, cpus: &CpuList) -> BTreeMap<u32, CpuList> {
    let of = |cpu| {
        let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        // Linux 5.1 renamed the file, and kept the old name as well.
        root.cpulist(format!("{topology}/core_cpus_list"))
            .or_else(|| root.cpulist(format!("{topology}/thread_siblings_list")))
    };
    cpus.iter().filter_map(|cpu| Some((cpu, of(cpu)?))).collect()
}
