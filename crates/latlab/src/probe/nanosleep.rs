//! Relative sleeps: how much longer than asked a sleep takes.

use super::{Probe, interval};
use crate::failure::{Failure, Result};
use crate::registry::About;
use crate::rig::{Lane, Phase, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::clock;

/// Sleeps for a set time, again and again, and records slept − asked.
///
/// The question of the Rapid Reaction Linux paper (Heursch and Rzehak 2001, tables 1 to 5): a
/// kernel whose timers tick adds up to a tick to each sleep. The first sleep is also reported
/// apart. With `spin`, the last part is waited for with a busy loop, as the paper does at and
/// below 2 ms.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Nanosleep {
    /// How long each sleep is asked to take
    #[arg(long, default_value = "50ms", value_parser = interval)]
    interval: Nanos,
    /// How much of the interval, at its end, is busy waiting instead of sleep
    #[arg(long, default_value = "0")]
    spin: Nanos,
    /// Whether the CPUs begin spread over the interval or at the same moment
    #[arg(long, default_value = "shifted")]
    phase: Phase,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

impl Probe for Nanosleep {
    const ABOUT: About =
        About { name: "nanosleep", summary: "how much longer than asked a relative sleep takes" };

    fn check(&self, _: &CpuList) -> Result<()> {
        if self.spin <= self.interval {
            return self.scheduling.check();
        }
        let (spin, interval) = (self.spin, self.interval);
        Err(Failure::Failed(format!(
            "nanosleep: spin={spin} is longer than the interval, {interval}"
        )))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("end of the sleep asked for", "thread running")];
        rig.on_each_cpu(
            Self::ABOUT.name,
            &spans,
            Rhythm::Every(self.interval),
            &self.scheduling,
            |lane| {
                self.sleep_again_and_again(lane);
                Ok(())
            },
        )
    }
}

impl Nanosleep {
    fn sleep_again_and_again(&self, lane: &mut Lane<'_>) {
        let asleep = self.interval - self.spin;
        clock::sleep_until(lane.begin(self.phase) - self.interval);
        while lane.running() {
            let due = clock::now() + self.interval;
            if asleep > Nanos(0) && !clock::sleep_for(asleep) {
                continue;
            }
            let mut now = clock::now();
            while now < due && self.spin > Nanos(0) {
                now = clock::now();
            }
            lane.wakeup(due, now);
        }
    }
}
