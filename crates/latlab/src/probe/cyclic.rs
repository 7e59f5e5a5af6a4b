//! Absolute sleeps: time from timer expiry until the thread runs.

use super::{Probe, interval};
use crate::failure::Result;
use crate::part::{About, Describe};
use crate::rig::{Pacing, Phase, Rig, Sampler, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::record::Warning;
use latlab_core::time::Nanos;
use latlab_sys::clock::{self, SettableClock};

/// Measures the time from the expiry of a thread's timer until the thread runs.
///
/// One thread per CPU sleeps with clock_nanosleep, TIMER_ABSTIME on CLOCK_MONOTONIC. The wake-up
/// times are absolute and never re-phased: a late wake-up does not delay the next one, and each
/// period without a wake-up of its own is counted as missed. This is the measurement of
/// cyclictest, without the coordinated omission that hides a stall. On another clock a step forward
/// of that clock is part of the latency, and the periods in it count as missed; after a step back the
/// thread sleeps longer, which that clock does not show. A warning names the step, and --for does not
/// end early.
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

    /// The clock that can be set; none for the monotonic one.
    fn settable(self) -> Option<SettableClock> {
        match self {
            Clock::Monotonic => None,
            Clock::Realtime => Some(SettableClock::realtime()),
            Clock::Tai => Some(SettableClock::tai()),
        }
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
        let (began, settable) = (clock::now(), self.clock.settable());
        let measured = rig.on_each_cpu(
            Self::ABOUT.name,
            &spans,
            Pacing::Periodic(self.interval),
            &self.scheduling,
            |sampler| {
                match self.clock.settable() {
                    None => self.cycle(sampler, clock::sleep_until, clock::now),
                    Some(clock) => self.cycle_on(sampler, clock),
                }
                Ok(())
            },
        );
        rig.warnings.extend(settable.and_then(|clock| self.step(clock, began)));
        measured
    }
}

impl Cyclic {
    fn cycle_on(&self, sampler: &mut Sampler<'_>, clock: SettableClock) {
        sampler.set_settable_clock();
        self.cycle(sampler, |due| clock.sleep_until(due), || clock.now());
    }

    /// Says by how much the clock was set since it was read as the monotonic one, at `began`.
    fn step(&self, clock: SettableClock, began: Nanos) -> Option<Warning> {
        // Another task may run between two of these.
        let (before, there, after) = (clock::now(), clock.now(), clock::now());
        // The kernel slews a clock by at most 500 ppm; a program that changes the tick can slew it more.
        let slewed = self.interval + Nanos((after - began).0 / 1_000);
        let step = match there {
            _ if there > after + slewed => format!("ahead by {}", there - after),
            _ if there + slewed < before => format!("back by {}", before - there),
            _ => return None,
        };
        let text = format!("{}: its clock was set {step} while it measured", Self::ABOUT.name);
        Some(Warning::new("clock-set", text))
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
