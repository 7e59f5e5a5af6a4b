//! Probes: each measures one latency, or one throughput.

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

use crate::rig::Rig;
use crate::workload::worker::WorkerChannel;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::Length;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::needs::Needs;
use latlab_part::part::{self, Built, Describe, Entry, Params};
use latlab_sys::mutex::{Mutex, Protocol};
use serde_json::Value;
use std::fmt::Debug;
use std::io;

/// Every probe, in the order `latlab list probes` shows them.
pub static PROBES: &[Entry<dyn Probe>] = &[
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

/// A probe.
pub trait Probe: Debug + Send + Sync {
    /// Its needs beyond a kernel.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Duration of its measurement, as a multiple of the run's length.
    fn length_factor(&self) -> u64 {
        1
    }

    /// Whether every number of samples is reached eventually; otherwise only a time ends the probe.
    fn supports_count(&self) -> bool {
        true
    }

    /// Whether its samples are gaps of a busy loop, not wake-ups.
    fn is_busy_loop(&self) -> bool {
        false
    }

    /// Refuses what can't work on these CPUs, before anything is started.
    fn check(&self, _cpus: &CpuList) -> Result<()> {
        Ok(())
    }

    /// Measures until the rig ends it.
    fn run(&self, rig: &mut Rig<'_>) -> Result<()>;

    /// Body of its worker process, if it starts one.
    fn run_worker(&self, _channel: &WorkerChannel) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Runs a worker process: `latlab probe-worker ORDERS`.
pub fn serve(orders: &str) -> Result<()> {
    let (part, channel) = WorkerChannel::open(orders)?;
    let probe = part::build("probe", PROBES, &part)?;
    // The parent reports a failure: it is the answer.
    probe.run_worker(&channel).or_else(|why| WorkerChannel::report_error(&why))
}

/// Refuses a number of samples for a probe that may never reach it.
pub fn check_length(probe: &Built<dyn Probe>, length: Length) -> Result<()> {
    if probe.supports_count() || matches!(length, Length::For(_)) {
        return Ok(());
    }
    let why = "it may never reach a number of samples: give a time with --for instead of --count";
    Err(Failure::failed(format!("{}: {why}", probe.name())))
}

const fn entry<P: Probe + Describe + Params>() -> Entry<dyn Probe> {
    Entry {
        about: P::ABOUT,
        keys: part::keys::<P>,
        read: part::read::<P>,
        build: |params| Ok(Box::new(serde_json::from_value::<P>(Value::Object(params))?)),
    }
}

/// Fails where mutexes have no priority inheritance.
fn check_inheritance(probe: &str) -> Result<()> {
    Mutex::new(Protocol::Inherit).map(drop).map_err(|error| {
        Failure::unsupported(format!(
            "{probe}: this kernel has no mutexes with priority inheritance ({error}): use one with \
             CONFIG_FUTEX_PI"
        ))
    })
}

/// Reads an interval: a period of 0 would let nothing else run.
fn interval(text: &str) -> std::result::Result<Nanos, String> {
    let interval: Nanos = text.parse().map_err(|e| format!("{e}"))?;
    let (least, most) = (1_000, 3_600_000_000_000);
    if (least..=most).contains(&interval.0) {
        return Ok(interval);
    }
    Err(format!("{text} is out of range: an interval is 1us to 1h"))
}
