//! `latlab scan`: where in a system call can this kernel not be preempted?

use super::measurement::Measurement;
use crate::call::CALLS;
use crate::failure::Result;
use crate::registry;
use latlab_core::cpulist::CpuList;
use latlab_core::plan::{Length, Plan};
use latlab_core::scan::{Interrupt, ScanPlan};
use latlab_core::time::Nanos;

/// Find where in a system call the kernel can't be preempted
///
/// A task of low priority makes the call while an interrupt wakes one of high priority, a little
/// later each time. How late that one runs is drawn over the moment of the interrupt: a stretch
/// that can't be preempted is a triangle, as high as it is long. Where there are such edges, the
/// scan closes in on them.
#[derive(Debug, clap::Args)]
pub(super) struct Scan {
    /// Calls with their parameters, as munmap:4MiB (see: latlab list calls)
    #[arg(value_name = "CALL[:key=value,…]", required = true)]
    calls: Vec<String>,
    /// Moments to begin with, spread evenly over the call
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    points: u32,
    /// How closely to close in on edges [default: 1us, in instruction time 50ns]
    #[arg(long, value_name = "TIME", value_parser = super::positive)]
    resolution: Option<Nanos>,
    /// Most measurements at one moment, where they do not agree before
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    /// What interrupts the call [default: what fits it and the machine]
    #[arg(long, value_parser = interrupt)]
    interrupt: Option<Interrupt>,
    /// When to stop looking closer
    #[arg(long = "for", value_name = "TIME", default_value = "45s", value_parser = super::positive)]
    time: Nanos,
    /// The CPU to measure on [default: the last that may be used]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    #[command(flatten)]
    measurement: Measurement,
}

fn interrupt(text: &str) -> std::result::Result<Interrupt, String> {
    let found = Interrupt::ALL.iter().find(|(name, _)| *name == text);
    found.map(|(_, interrupt)| *interrupt).ok_or_else(|| {
        let names = Interrupt::ALL.map(|(name, _)| name);
        latlab_core::suggest::hint(text, &names)
    })
}

/// In instruction time an edge can be closed in on as far as one likes, at no cost in noise.
const FINE: Nanos = Nanos(50);
const COARSE: Nanos = Nanos::from_micros(1);

impl Scan {
    pub(super) fn run(&self) -> Result<()> {
        self.measurement.carry_out(&self.plan()?)
    }

    fn plan(&self) -> Result<Plan> {
        let scans = self.calls.iter().map(|text| self.scan(text)).collect::<Result<_>>()?;
        Ok(Plan {
            probes: Vec::new(),
            scans,
            loads: Vec::new(),
            target: String::new(),
            cpus: self.cpu.into_iter().collect::<CpuList>(),
            length: Length::For(self.time),
            warm_up: Nanos(0),
            seed: 0,
            stop_above: None,
            settings: Vec::new(),
        })
    }

    fn scan(&self, text: &str) -> Result<ScanPlan> {
        let by_kind = if self.measurement.is_in_instructions() { FINE } else { COARSE };
        Ok(ScanPlan {
            call: registry::parse("call", CALLS, text, &[])?,
            points: self.points,
            resolution: self.resolution.unwrap_or(by_kind),
            repeat: self.repeat,
            interrupt: self.interrupt,
            limit: self.time,
        })
    }
}
