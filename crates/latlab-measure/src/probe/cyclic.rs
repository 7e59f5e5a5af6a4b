//! Absolute sleeps: time from timer expiry until the thread runs.

use super::{Probe, interval};
use crate::rig::{Pacing, Phase, Rig, Sampler, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::record::{Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::clock::{self, SettableClock, Step};
use latlab_sys::clock_watch::ClockWatch;
use std::io;

/// Measures the time from the expiry of a thread's timer until the thread runs.
///
/// One thread per CPU sleeps with clock_nanosleep, TIMER_ABSTIME on CLOCK_MONOTONIC. The wake-up
/// times are absolute and never re-phased: a late wake-up does not delay the next one, and each
/// period without a wake-up of its own is counted as missed. This is the measurement of
/// cyclictest, without the coordinated omission that hides a stall. On another clock a step forward
/// of that clock is part of the latency, and the periods in it count as missed; after a step back to
/// more than a period before the next wake-up, the thread is woken within a second and begins new
/// periods. A warning names the step, also where several cancel out, and --for ends neither early nor
/// late.
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
        rig.clock = settable.map(ClockWatch::of);
        let measured = rig.on_each_cpu(
            Self::ABOUT.name,
            &spans,
            Pacing::Periodic(self.interval),
            &self.scheduling,
            |sampler| match self.clock.settable() {
                None => self.cycle(sampler),
                Some(clock) => self.cycle_on(sampler, clock),
            },
        );
        let was_set = rig.clock.take().is_some_and(|mut watch| watch.was_set());
        let clock_set = settable.and_then(|clock| self.clock_set(clock, began, was_set));
        rig.warnings.extend(clock_set);
        measured
    }
}

impl Cyclic {
    fn cycle(&self, sampler: &mut Sampler<'_>) -> io::Result<()> {
        let mut due = sampler.first_due(self.phase);
        while sampler.running() {
            if clock::wait_until(due)? {
                due = sampler.record_wakeup(due, clock::now());
            }
        }
        Ok(())
    }

    fn cycle_on(&self, sampler: &mut Sampler<'_>, clock: SettableClock) -> io::Result<()> {
        let mut clock = clock;
        let mut due = sampler.first_due(self.phase);
        sampler.set_settable_clock();
        while sampler.running() {
            if clock.wait_until(due)? {
                due = sampler.record_wakeup(due, clock.now());
            } else if due > clock.now() + self.interval {
                // It was set back: the monitor interrupts the sleep, which would last as much longer.
                clock = clock.read_anew();
                due = sampler.begin_anew(due, clock.now());
            }
        }
        Ok(())
    }

    /// A warning that the clock was set since it was read as the monotonic one, at `began`: by how much
    /// or, where it only `was_set`, that the steps cancel out.
    fn clock_set(&self, clock: SettableClock, began: Nanos, was_set: bool) -> Option<Warning> {
        // The kernel slews a clock by at most 500 ppm; a program that changes the tick can slew it more.
        let slewed = self.interval + Nanos((clock::now() - began).0 / 1_000);
        let step = match clock.step(slewed) {
            Some(Step::Ahead(by)) => format!("ahead by {by}"),
            Some(Step::Back(by)) => format!("back by {by}"),
            None if was_set => "to and fro, or by less than an interval".to_owned(),
            None => return None,
        };
        let text = format!("{}: its clock was set {step} while it measured", Self::ABOUT.name);
        Some(Warning::new(WarningCode::ClockSet, text))
    }
}
