//! Absolute sleeps: time from timer expiry until the thread runs.

use super::{Probe, interval};
use crate::failure::Result;
use crate::part::{About, Describe};
use crate::rig::{Pacing, Phase, Rig, Sampler, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::clock::{self, SettableClock};

/// Measures the time from the expiry of a thread's timer until the thread runs.
///
/// One thread per CPU sleeps with clock_nanosleep, TIMER_ABSTIME on CLOCK_MONOTONIC. The wake-up
/// times are absolute and never re-phased: a late wake-up does not delay the next one, and each
/// period without a wake-up of its own is counted as missed. This is the measurement of
/// cyclictest, without the coordinated omission that hides a stall. On another clock a step forward
/// of that clock is part of the latency; after a step back the thread sleeps longer, which that clock
/// does not show.
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
    /// Clock of the wake-up times and of the latency
    #[arg(long, default_value = "monotonic")]
    #[serde(default, skip_serializing_if = "Clock::is_monotonic")]
    clock: Clock,
}

/// The clock of the probe.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Clock {
    #[default]
    Monotonic,
    Realtime,
    Tai,
}

impl Clock {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_monotonic(&self) -> bool {
        matches!(self, Clock::Monotonic)
    }
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
                match self.clock {
                    Clock::Monotonic => self.cycle(sampler, clock::sleep_until, clock::now),
                    Clock::Realtime => self.cycle_on(sampler, SettableClock::realtime()),
                    Clock::Tai => self.cycle_on(sampler, SettableClock::tai()),
                }
                Ok(())
            },
        )
    }
}

impl Cyclic {
    fn cycle_on(&self, sampler: &mut Sampler<'_>, clock: SettableClock) {
        self.cycle(sampler, |due| clock.sleep_until(due), || clock.now());
    }

    #[inline]
    fn cycle(
        &self,
        sampler: &mut Sampler<'_>,
        sleep_until: impl Fn(Nanos) -> bool,
        now: impl Fn() -> Nanos,
    ) {
        let mut due = sampler.first_due(self.phase);
        while sampler.running() {
            if sleep_until(due) {
                due = sampler.record_wakeup(due, now());
            }
        }
    }
}
