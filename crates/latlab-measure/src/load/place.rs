//! The CPUs that a load runs on.

use super::Load;
use latlab_core::cpulist::CpuList;
use latlab_core::machine::Machine;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::Built;
use serde::{Deserialize, Serialize};

/// The CPUs that a load runs on, relative to the measured ones.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub struct Place {
    /// CPUs to run on: all, those that the probe measures, their SMT siblings, or the others
    #[arg(long, default_value = "all")]
    on: On,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum On {
    All,
    Probe,
    Sibling,
    Others,
}

impl Place {
    /// Selects CPUs of `machine`, relative to the measured ones.
    fn cpus(&self, load: &str, measured: &CpuList, machine: &Machine) -> Result<CpuList> {
        let siblings = || {
            let siblings = measured.iter().filter_map(|cpu| machine.siblings.get(&cpu));
            siblings.flat_map(CpuList::iter).collect::<CpuList>().minus(measured)
        };
        let (cpus, which) = match self.on {
            On::All => (machine.cpus.clone(), "online CPU"),
            On::Probe => (measured.clone(), "measured CPU"),
            On::Sibling => (siblings(), "hardware sibling of them"),
            On::Others => (machine.cpus.minus(measured), "CPU that is not measured"),
        };
        if cpus.is_empty() {
            let online = &machine.cpus;
            return Err(Failure::unsupported(format!(
                "{load}: the probe measures on CPU {measured} of {online}, and there is no {which}: \
                 choose other --cpus, or another on="
            )));
        }
        Ok(cpus)
    }
}

/// A load that can work here, and the CPUs it runs on.
#[derive(Clone, Debug)]
pub struct Placed {
    pub(super) load: Built<dyn Load>,
    pub(super) cpus: CpuList,
}

impl Placed {
    /// Places a load. Fails where it can't work here.
    pub fn new(load: &Built<dyn Load>, measured: &CpuList, machine: &Machine) -> Result<Placed> {
        let name = load.name();
        let cpus = load.place().cpus(name, measured, machine)?;
        let least = load.least_cpus();
        if cpus.len() < least {
            return Err(Failure::unsupported(format!(
                "{name}: it needs {least} CPUs, and would run on CPU {cpus}: choose another on=, or a \
                 machine or a profile with more (cpus = {least})"
            )));
        }
        load.check(if load.one_worker() { 1 } else { cpus.len() as u64 })?;
        Ok(Placed { load: load.clone(), cpus })
    }

    /// The name of the load.
    pub fn name(&self) -> &str {
        self.load.name()
    }

    /// Whether the load needs the test driver's interrupt.
    pub fn needs_interrupt(&self) -> bool {
        self.load.needs().interrupt
    }

    /// The knobs that the load changes.
    pub fn changes(&self) -> &'static [&'static str] {
        self.load.changes()
    }

    /// The CPUs of each of its workers.
    pub(super) fn workers(&self) -> Vec<CpuList> {
        if self.load.one_worker() {
            return vec![self.cpus.clone()];
        }
        self.cpus.iter().map(|cpu| CpuList::from_iter([cpu])).collect()
    }
}
