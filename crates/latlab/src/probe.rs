//! Probes: each asks one question about one latency.

mod cyclic;
mod nanosleep;
mod timer;

use crate::failure::Result;
use crate::registry::{self, About, Entry, Params};
use crate::rig::Rig;
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use serde_json::Value;

/// Every probe, in the order `latlab list probes` shows them.
pub(crate) static PROBES: &[Entry<dyn AnyProbe>] =
    &[entry::<cyclic::Cyclic>(), entry::<nanosleep::Nanosleep>(), entry::<timer::Timer>()];

/// One benchmark.
pub(crate) trait Probe: Params {
    const ABOUT: About;

    /// Refuses what can't work on these CPUs, before anything starts.
    fn check(&self, _cpus: &CpuList) -> Result<()> {
        Ok(())
    }

    /// Measures until the rig says that it is over.
    fn run(&self, rig: &mut Rig<'_>) -> Result<()>;
}

/// A [`Probe`] whose type has been erased, as the table holds it.
pub(crate) trait AnyProbe: Send + Sync {
    fn check(&self, cpus: &CpuList) -> Result<()>;
    fn run(&self, rig: &mut Rig<'_>) -> Result<()>;
}

impl<P: Probe> AnyProbe for P {
    fn check(&self, cpus: &CpuList) -> Result<()> {
        Probe::check(self, cpus)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        Probe::run(self, rig)
    }
}

const fn entry<P: Probe>() -> Entry<dyn AnyProbe> {
    Entry {
        about: P::ABOUT,
        keys: registry::keys::<P>,
        read: registry::read::<P>,
        build: |params| Ok(Box::new(serde_json::from_value::<P>(Value::Object(params))?)),
    }
}

/// What every probe with threads of its own may be told about their scheduling.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Scheduling {
    /// Scheduling policy of the measuring threads
    #[arg(long, default_value = "fifo", value_parser = ["fifo", "rr", "deadline", "other"])]
    pub(crate) policy: String,
    /// Real-time priority under fifo and rr; 99 belongs to the kernel's own threads
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(crate) priority: u32,
    /// Timer slack to set; the kernel's default is 50us, and none for real-time policies
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) slack: Option<Nanos>,
    /// CPU time per period under deadline; a fifth of the period if not given
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) runtime: Option<Nanos>,
}

/// When the threads of different CPUs wake up.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// Spread evenly over the period, so that they disturb each other least.
    Shifted,
    /// All at the same moment, so that they disturb each other most.
    Aligned,
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
