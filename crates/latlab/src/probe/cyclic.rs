//! Absolute sleeps: time from timer expiry until the thread runs.

use super::{Probe, interval};
use crate::failure::Result;
use crate::part::{About, Describe};
use crate::rig::{Pacing, Phase, Rig, Sampler, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::clock;

/// Measures the time from the expiry of a thread's timer until the thread runs.
///
/// One thread per CPU sleeps with clock_nanosleep, TIMER_ABSTIME on CLOCK_MONOTONIC. The wake-up
/// times are absolute and never re-phased: a late wake-up does not delay the next one, and each
/// period without a wake-up of its own is counted as missed. This is the measurement of
/// cyclictest, without the coordinated omission that hides a stall.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Cyclic {
    /// Time between two wake-ups
    #[arg(long, default_value = "1ms", value_parser = interval)]
    interval: Nanos,
    /// Whether the CPUs wake up spread over the period or at the same time
    #[arg(long, default_value = "shifted")]
    phase: Phase,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

impl Describe for Cyclic {
    const ABOUT: About =
        About { name: "cyclic", summary: "time from timer expiry until the sleeping thread runs" };
}

impl Probe for Cyclic {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("timer expiry", "thread running")];
        rig.on_each_cpu(
            Self::ABOUT.name,
            &spans,
            Pacing::Periodic(self.interval),
            &self.scheduling,
            |sampler| {
                self.cycle(sampler);
                Ok(())
            },
        )
    }
}

impl Cyclic {
    fn cycle(&self, sampler: &mut Sampler<'_>) {
        let mut due = sampler.first_due(self.phase);
        while sampler.running() {
            if clock::sleep_until(due) {
                due = sampler.record_wakeup(due, clock::now());
            }
        }
    }
}
