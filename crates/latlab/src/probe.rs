//! Probes: each asks one question about one latency.

mod context;
mod cyclic;
mod hackbench;
mod inject;
mod migrate;
mod mutex;
mod nanosleep;
mod netbench;
mod noise;
mod player;
mod realfeel;
mod rhealstone;
mod schedule;
mod signal;
mod timer;

use crate::failure::{Failure, Result};
use crate::needs::Needs;
use crate::registry::{self, About, Entry, Params};
use crate::rig::Rig;
use crate::worker::Post;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Part};
use latlab_core::time::Nanos;
use latlab_sys::mutex::{Mutex, Protocol};
use serde_json::Value;
use std::io;

/// Every probe, in the order `latlab list probes` shows them.
pub(crate) static PROBES: &[Entry<dyn AnyProbe>] = &[
    entry::<cyclic::Cyclic>(),
    entry::<nanosleep::Nanosleep>(),
    entry::<timer::Timer>(),
    entry::<realfeel::Realfeel>(),
    entry::<signal::Signal>(),
    entry::<mutex::Mutex>(),
    entry::<migrate::Migrate>(),
    entry::<schedule::Schedule>(),
    entry::<context::Context>(),
    entry::<noise::Noise>(),
    entry::<rhealstone::Rhealstone>(),
    entry::<rhealstone::switch::Switch>(),
    entry::<rhealstone::preemption::Preemption>(),
    entry::<rhealstone::interrupt::Interrupt>(),
    entry::<rhealstone::semaphore::Semaphore>(),
    entry::<rhealstone::deadlock::Deadlock>(),
    entry::<rhealstone::message::Message>(),
    entry::<hackbench::Hackbench>(),
    entry::<netbench::Netbench>(),
    entry::<player::Player>(),
    entry::<inject::Inject>(),
];

/// One benchmark.
pub(crate) trait Probe: Params {
    const ABOUT: About;

    /// What it needs beyond a kernel.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// How many times the run's length it measures.
    fn lengths(&self) -> u64 {
        1
    }

    /// Whether so many samples come for certain; else only time ends it.
    fn comes(&self) -> bool {
        true
    }

    /// Refuses what can't work on these CPUs, before anything starts.
    fn check(&self, _cpus: &CpuList) -> Result<()> {
        Ok(())
    }

    /// Measures until the rig says that it is over.
    fn run(&self, rig: &mut Rig<'_>) -> Result<()>;

    /// What its worker does, in a process of its own, where it has started one.
    fn work(&self, _post: &Post) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A [`Probe`] whose type has been erased, as the table holds it.
pub(crate) trait AnyProbe: Send + Sync {
    fn needs(&self) -> Needs;
    fn lengths(&self) -> u64;
    fn comes(&self) -> bool;
    fn check(&self, cpus: &CpuList) -> Result<()>;
    fn run(&self, rig: &mut Rig<'_>) -> Result<()>;
    fn work(&self, post: &Post) -> io::Result<()>;
}

impl<P: Probe> AnyProbe for P {
    fn needs(&self) -> Needs {
        Probe::needs(self)
    }

    fn lengths(&self) -> u64 {
        Probe::lengths(self)
    }

    fn comes(&self) -> bool {
        Probe::comes(self)
    }

    fn check(&self, cpus: &CpuList) -> Result<()> {
        Probe::check(self, cpus)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        Probe::run(self, rig)
    }

    fn work(&self, post: &Post) -> io::Result<()> {
        Probe::work(self, post)
    }
}

/// The life of a worker: `latlab probe-worker ORDERS`.
pub(crate) fn serve(orders: &str) -> Result<()> {
    let (part, post) = Post::take_up(orders)?;
    let probe = registry::build("probe", PROBES, &part)?;
    // What went wrong is the answer: who gave the order says it.
    probe.work(&post).or_else(|why| Post::complain(&why))
}

/// What a probe needs.
pub(crate) fn needs(probe: &Part) -> Result<Needs> {
    registry::build("probe", PROBES, probe).map(|probe| probe.needs())
}

/// How many times the run's length a probe measures.
pub(crate) fn lengths(probe: &Part) -> Result<u64> {
    registry::build("probe", PROBES, probe).map(|probe| probe.lengths())
}

/// Refuses a number of samples for a probe of which they may never come.
pub(crate) fn check_length(probe: &Part, length: Length) -> Result<()> {
    let comes = registry::build("probe", PROBES, probe)?.comes();
    if comes || matches!(length, Length::For(_)) {
        return Ok(());
    }
    let why = "what it counts may never come: say how long with --for, not how much with --count";
    Err(Failure::Failed(format!("{}: {why}", probe.name)))
}

const fn entry<P: Probe>() -> Entry<dyn AnyProbe> {
    Entry {
        about: P::ABOUT,
        keys: registry::keys::<P>,
        read: registry::read::<P>,
        build: |params| Ok(Box::new(serde_json::from_value::<P>(Value::Object(params))?)),
    }
}

/// Refuses where mutexes have no priority inheritance.
fn check_inheritance(probe: &str) -> Result<()> {
    Mutex::new(Protocol::Inherit).map(drop).map_err(|error| {
        Failure::Unsupported(format!(
            "{probe}: there are no mutexes with priority inheritance here ({error}): use a kernel \
             with CONFIG_FUTEX_PI"
        ))
    })
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
