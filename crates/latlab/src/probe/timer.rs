//! Periodic timers: how regularly their expiries reach a task.

use super::{Probe, interval};
use crate::failure::{Failure, Result};
use crate::registry::About;
use crate::rig::{Lane, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::{clock, timer};
use std::io;

/// Arms a periodic timer and records the time between two activations of the task.
///
/// The question of Abeni et al. 2002, figures 1 and 2. Two series a CPU: the time from one
/// activation to the next, and by how much it differs from the period, either way. Expiries that
/// the kernel merged are counted as missed.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Timer {
    /// Which timer: a POSIX timer's signal, setitimer's SIGALRM (one per process), or timerfd
    #[arg(long, default_value = "posix")]
    source: Source,
    /// The period
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
enum Source {
    Posix,
    Itimer,
    Fd,
}

/// The series of a lane: the distance from the period, and the times themselves. The first is the
/// one that limits apply to.
const APART: usize = 0;
const BETWEEN: usize = 1;

impl Probe for Timer {
    const ABOUT: About = About {
        name: "timer",
        summary: "how regularly a periodic timer's signal or file wakes a task",
    };

    fn check(&self, cpus: &CpuList) -> Result<()> {
        let refused =
            |why: &str| Err(Failure::Failed(format!("timer: {why}, or use source=posix")));
        match self.source {
            Source::Itimer if cpus.len() > 1 => {
                refused("setitimer is one per process: name one CPU with --cpus")
            }
            Source::Itimer if !self.interval.0.is_multiple_of(1_000) => {
                refused("setitimer knows whole microseconds only: give such an interval")
            }
            _ => self.scheduling.check(),
        }
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("period", "time between activations"), ("activation", "next activation")];
        rig.on_each_cpu(
            Self::ABOUT.name,
            &spans,
            Rhythm::Every(self.interval),
            &self.scheduling,
            |lane| self.activate(lane),
        )
    }
}

impl Timer {
    fn activate(&self, lane: &mut Lane<'_>) -> io::Result<()> {
        let timer = match self.source {
            Source::Posix => timer::Timer::posix(self.interval)?,
            Source::Itimer => timer::Timer::interval(self.interval)?,
            Source::Fd => timer::Timer::fd(self.interval)?,
        };
        // The first activation has none before it to be measured from.
        while timer.wait().is_none() && lane.running() {}
        let mut before = clock::now();
        lane.begin_at(before);
        while lane.running() {
            let Some(unseen) = timer.wait() else { continue };
            let now = clock::now();
            let between = now - before;
            let missed = match self.source {
                // The kernel does not say, but a whole period without a signal is one.
                Source::Itimer => (between.0 + self.interval.0 / 2) / self.interval.0,
                Source::Posix | Source::Fd => unseen + 1,
            }
            .saturating_sub(1);
            lane.sample(APART, now, Nanos(between.0.abs_diff(self.interval.0)));
            lane.sample(BETWEEN, now, between);
            lane.pass(now, missed);
            before = now;
        }
        Ok(())
    }
}
