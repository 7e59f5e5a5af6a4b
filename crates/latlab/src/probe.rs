//! Probes: each asks one question about one latency.

mod cyclic;
mod nanosleep;
mod player;
mod realfeel;
mod timer;

use crate::failure::Result;
use crate::needs::Needs;
use crate::registry::{self, About, Entry, Params};
use crate::rig::Rig;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::Part;
use latlab_core::time::Nanos;
use serde_json::Value;

/// Every probe, in the order `latlab list probes` shows them.
pub(crate) static PROBES: &[Entry<dyn AnyProbe>] = &[
    entry::<cyclic::Cyclic>(),
    entry::<nanosleep::Nanosleep>(),
    entry::<player::Player>(),
    entry::<realfeel::Realfeel>(),
    entry::<timer::Timer>(),
];

/// One benchmark.
pub(crate) trait Probe: Params {
    const ABOUT: About;

    /// What it needs beyond a kernel.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Refuses what can't work on these CPUs, before anything starts.
    fn check(&self, _cpus: &CpuList) -> Result<()> {
        Ok(())
    }

    /// Measures until the rig says that it is over.
    fn run(&self, rig: &mut Rig<'_>) -> Result<()>;
}

/// A [`Probe`] whose type has been erased, as the table holds it.
pub(crate) trait AnyProbe: Send + Sync {
    fn needs(&self) -> Needs;
    fn check(&self, cpus: &CpuList) -> Result<()>;
    fn run(&self, rig: &mut Rig<'_>) -> Result<()>;
}

impl<P: Probe> AnyProbe for P {
    fn needs(&self) -> Needs {
        Probe::needs(self)
    }

    fn check(&self, cpus: &CpuList) -> Result<()> {
        Probe::check(self, cpus)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        Probe::run(self, rig)
    }
}

/// What a probe needs.
pub(crate) fn needs(probe: &Part) -> Result<Needs> {
    registry::build("probe", PROBES, probe).map(|probe| probe.needs())
}

const fn entry<P: Probe>() -> Entry<dyn AnyProbe> {
    Entry {
        about: P::ABOUT,
        keys: registry::keys::<P>,
        read: registry::read::<P>,
        build: |params| Ok(Box::new(serde_json::from_value::<P>(Value::Object(params))?)),
    }
}

/// Reads an interval: a period of 0 would never let anything else run.
fn interval(text: &str) -> std::result::Result<Nanos, String> {
    let interval: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    let (least, most) = (1_000, 3_600_000_000_000);
    if (least..=most).contains(&interval.0) {
        return Ok(interval);
    }
    Err(format!("{text} is out of range: an interval is 1us to 1h"))
}
