//! Periodic timers: regularity of the activations of a task.

use super::{Probe, interval};
use crate::rig::{Pacing, Rig, Sampler, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::periods;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};
use latlab_sys::{clock, timer};
use std::io;

/// Measures the time from one activation of a task by a periodic timer to the next activation.
///
/// This is the measurement of Abeni et al. 2002, figures 1 and 2. There are two series per CPU: the
/// absolute difference between that time and the period, and the time itself. Expiries that the
/// kernel merged are counted as missed.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Timer {
    /// Timer: POSIX timer with a signal, setitimer with SIGALRM (one per process), or timerfd
    #[arg(long, default_value = "posix")]
    source: TimerKind,
    /// Period of the timer
    #[arg(long, default_value = "1ms", value_parser = interval)]
    interval: Nanos,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
enum TimerKind {
    Posix,
    Itimer,
    Fd,
}

/// Indices of the series: the difference from the period, to which a limit applies, and the time
/// between activations.
const DIFFERENCE: usize = 0;
const BETWEEN: usize = 1;

impl Describe for Timer {
    const ABOUT: About =
        About { name: "timer", summary: "time between activations of a task by a periodic timer" };
}

impl Probe for Timer {
    fn check(&self, cpus: &CpuList) -> Result<()> {
        let refused =
            |why: &str| Err(Failure::failed(format!("timer: {why}, or use source=posix")));
        match self.source {
            TimerKind::Itimer if cpus.len() > 1 => {
                refused("setitimer has one timer per process: name one CPU with --cpus")
            }
            TimerKind::Itimer if !self.interval.0.is_multiple_of(1_000) => {
                refused("setitimer has a resolution of 1 us: use an interval of whole microseconds")
            }
            _ => self.scheduling.check(),
        }
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("period", "time between activations"), ("activation", "next activation")];
        rig.on_each_cpu(
            Self::ABOUT.name,
            &spans,
            Pacing::Periodic(self.interval),
            &self.scheduling,
            |sampler| self.activate(sampler),
        )
    }
}

impl Timer {
    fn activate(&self, sampler: &mut Sampler<'_>) -> io::Result<()> {
        let (set, resolution) = (clock::now(), clock::resolution());
        let timer = match self.source {
            TimerKind::Posix => timer::Timer::posix(self.interval)?,
            TimerKind::Itimer => timer::Timer::interval(self.interval)?,
            TimerKind::Fd => timer::Timer::fd(self.interval)?,
        };
        // The first activation has no predecessor to be measured from.
        while timer.wait()?.is_none() && sampler.running() {}
        let mut before = clock::now();
        let first = set + self.interval;
        let mut due = periods::judge_sleep(first, self.interval, before, resolution).next;
        sampler.start_at(before);
        while sampler.running() {
            let Some(overruns) = timer.wait()? else { continue };
            let now = clock::now();
            let between = now - before;
            let missed = match self.source {
                // The kernel does not count the periods that passed before the signal was taken. It
                // keeps their grid.
                TimerKind::Itimer => {
                    let wakeup = periods::judge_sleep(due, self.interval, now, resolution);
                    due = wakeup.next;
                    wakeup.missed
                }
                TimerKind::Posix | TimerKind::Fd => overruns,
            };
            sampler.record(DIFFERENCE, now, Nanos(between.0.abs_diff(self.interval.0)));
            sampler.record(BETWEEN, now, between);
            sampler.advance(now, missed);
            before = now;
        }
        Ok(())
    }
}
