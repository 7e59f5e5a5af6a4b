//! Relative sleeps: how much longer than requested they take.

use super::{Probe, interval};
use crate::rig::{Pacing, Phase, Rig, Sampler, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use std::io;

/// Measures the time from the requested end of a relative sleep until the thread runs.
///
/// This is the measurement of the Rapid Reaction Linux paper (Heursch and Rzehak 2001, tables 1 to
/// 5): a kernel without high-resolution timers adds up to a tick to each sleep. The first sleep is
/// also reported separately. With `spin`, the thread busy-waits for the last part of the interval,
/// as the paper does at and below 2 ms. Without high-resolution timers a sleep of one tick ends up
/// to a tick late; that is not a missed period.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Nanosleep {
    /// Requested duration of each sleep
    #[arg(long, default_value = "50ms", value_parser = interval)]
    interval: Nanos,
    /// Part of the interval, at its end, that is spent busy-waiting instead of sleeping
    #[arg(long, default_value = "0")]
    spin: Nanos,
    /// Whether the CPUs start spread over the interval or at the same time
    #[arg(long, default_value = "shifted")]
    phase: Phase,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

impl Describe for Nanosleep {
    const ABOUT: About = About {
        name: "nanosleep",
        summary: "time from the end of a relative sleep until the thread runs",
    };
}

impl Probe for Nanosleep {
    fn check(&self, _: &CpuList) -> Result<()> {
        if self.spin <= self.interval {
            return self.scheduling.check();
        }
        let (spin, interval) = (self.spin, self.interval);
        Err(Failure::failed(format!(
            "nanosleep: spin={spin} is longer than the interval, {interval}"
        )))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("end of the sleep asked for", "thread running")];
        rig.on_each_cpu(
            Self::ABOUT.name,
            &spans,
            Pacing::Periodic(self.interval),
            &self.scheduling,
            |sampler| self.sleep_repeatedly(sampler),
        )
    }
}

/// Returns a moment within the next tick. Without high-resolution timers a sleep ends at a tick,
/// while a program that begins to sleep does so at any moment.
fn between_ticks(now: Nanos, resolution: Nanos) -> Nanos {
    // The low digits of the time are as good as random; Knuth's multiplier spreads them.
    let scattered = now.0.wrapping_mul(2_654_435_761) >> 16;
    now + Nanos(scattered % resolution.0.max(1))
}

impl Nanosleep {
    fn sleep_repeatedly(&self, sampler: &mut Sampler<'_>) -> io::Result<()> {
        let asleep = self.interval - self.spin;
        let resolution = clock::resolution();
        clock::wait_until(sampler.first_due(self.phase) - self.interval)?;
        clock::spin_until(between_ticks(clock::now(), resolution));
        while sampler.running() {
            let due = clock::now() + self.interval;
            if asleep > Nanos(0) && !clock::wait_for(asleep)? {
                continue;
            }
            let mut now = clock::now();
            while now < due && self.spin > Nanos(0) {
                now = clock::now();
            }
            sampler.record_sleep(due, now, resolution);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sleep_begins_anywhere_within_a_tick() {
        let tick = Nanos::from_millis(10);
        let after = |nth: u64| {
            let now = Nanos(nth * tick.0 + nth);
            (between_ticks(now, tick) - now).0
        };
        let quarters: std::collections::BTreeSet<u64> =
            (1..100).map(|nth| after(nth) * 4 / tick.0).collect();
        assert_eq!(quarters.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(between_ticks(Nanos(5), Nanos(1)), Nanos(5));
    }
}
