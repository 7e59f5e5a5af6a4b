//! Absolute sleeps: how late a thread runs after its timer expired.

use super::{Probe, interval};
use crate::failure::Result;
use crate::registry::About;
use crate::rig::{Lane, Phase, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::clock;

/// Sleeps until a set time on each CPU and records how late it woke.
///
/// One thread a CPU sleeps with clock_nanosleep, TIMER_ABSTIME on CLOCK_MONOTONIC. The wake-up
/// times are absolute and never re-phased: a late wake-up does not move the next one, and the
/// periods it slept through are counted as missed. This is cyclictest's question, asked so that
/// a stall can't hide.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Cyclic {
    /// Time between two wake-ups
    #[arg(long, default_value = "1ms", value_parser = interval)]
    interval: Nanos,
    /// Whether the CPUs wake spread over the period or at the same moment
    #[arg(long, default_value = "shifted")]
    phase: Phase,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

impl Probe for Cyclic {
    const ABOUT: About = About {
        name: "cyclic",
        summary: "how late a sleeping thread runs after its timer expired",
    };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("timer expiry", "thread running")];
        rig.on_each_cpu(
            Self::ABOUT.name,
            &spans,
            Rhythm::Every(self.interval),
            &self.scheduling,
            |lane| {
                self.cycle(lane);
                Ok(())
            },
        )
    }
}

impl Cyclic {
    fn cycle(&self, lane: &mut Lane<'_>) {
        let mut due = lane.begin(self.phase);
        while lane.running() {
            if clock::sleep_until(due) {
                due = lane.wakeup(due, clock::now());
            }
        }
    }
}
