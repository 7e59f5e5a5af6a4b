//! Rhealstone's third component: from an interrupt to its handler, and on to a task.

use crate::driver;
use crate::failure::{Failure, Result};
use crate::needs::Needs;
use crate::probe::Probe;
use crate::registry::About;
use crate::rig::{Cost, Lane, Rhythm, Rig, Scheduling, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::record::Warning;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::driver::{Driver, Source as Interrupter};
use std::io;

/// Lets an interrupt come at a known time and records when its handler and a task run.
///
/// Two series: from the interrupt to the first instruction of its handler (the interrupt response
/// time of Heursch et al. 2001, table 2; Rhealstone's interrupt latency, Kar and Porter 1989), and
/// from there to the task that waits for it. Both ends of the first are known to latlab's test
/// driver only: with `source=driver` its timer interrupts, with `source=device` QEMU's `edu`
/// device, ten times a second, which is exact in the laboratory. With `source=timer` the task
/// sleeps on a timer of its own, and the one series is from the timer's expiry to the task.
/// `auto` is the driver where it is loaded (guests get it, unless their kernel has no headers to
/// build it with: source=timer needs none), its device where timers only fire at ticks
/// (`highres=off`: there the driver's timer is late by up to a tick), else the timer, with a
/// warning. The driver has one interrupt: it comes on the last of the CPUs. Subtracted is one
/// reading of the clock where a task reads it, nothing where the handler does.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Interrupt {
    /// Where the interrupt comes from
    #[arg(long, default_value = "auto")]
    pub(super) source: Source,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) scheduling: Scheduling,
}

/// Where the interrupt comes from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// The best there is.
    Auto,
    /// The test driver's timer.
    Driver,
    /// The test driver's device, which QEMU has.
    Device,
    /// The task's own timer: nothing is known of its handler.
    Timer,
}

/// How long before the interrupt it is set: the task sleeps by then.
const AHEAD: Nanos = Nanos::from_micros(100);

const RESPONSE: usize = 0;
const TASK: usize = 1;

impl Probe for Interrupt {
    const ABOUT: About = About {
        name: "rhealstone.interrupt",
        summary: "interrupt to its handler's first instruction, and to a task",
    };

    fn needs(&self) -> Needs {
        if self.source == Source::Timer { Needs::default() } else { Needs::interrupt() }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_ranks(Self::ABOUT.name, 0)?;
        let there = match self.source {
            Source::Driver => driver::open().map(drop),
            Source::Device => driver::check_device(),
            Source::Auto | Source::Timer => Ok(()),
        };
        there.map_err(|why| driver::refused(why, Self::ABOUT.name, "source=timer"))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let (source, without) = self.source.resolved();
        let timer = [("timer expiry", "task running")];
        let driver = [
            ("interrupt due", "handler's first instruction"),
            ("handler's first instruction", "task running"),
        ];
        let spans: &[Span] = if source == Source::Timer { &timer } else { &driver };
        let clock = Cost::of_the_clock();
        let body = |lane: &mut Lane<'_>| {
            let cost = clock.read_the_clock();
            match source {
                Source::Timer => {
                    until_the_task(lane, cost);
                    Ok(())
                }
                _ => until_the_handler(lane, source, cost),
            }
        };
        let name = Self::ABOUT.name;
        let places = places(rig.cpus(), source);
        let done =
            rig.on_each_of(&places, name, spans, Rhythm::REPETITIONS, &self.scheduling, body);
        rig.keep_cost(name, &clock);
        if let Some(why) = without {
            let text = format!(
                "rhealstone.interrupt measured from a timer's expiry to the task, for only the test \
                 driver knows when the handler ran: {why}"
            );
            rig.warnings.push(Warning::new("no-test-driver", text));
        }
        done
    }
}

impl Source {
    /// What there is of it here, and why there is no driver where there could be.
    fn resolved(self) -> (Source, Option<Failure>) {
        if self != Source::Auto {
            return (self, None);
        }
        let ticks = clock::resolution().is_ok_and(|resolution| resolution > Nanos(1));
        match (driver::open(), driver::check_device()) {
            (Err(why), _) => (Source::Timer, Some(why)),
            (Ok(_), Ok(())) if ticks => (Source::Device, None),
            (Ok(_), _) => (Source::Driver, None),
        }
    }
}

/// Where the tasks are: the driver has one interrupt, and the first CPU has most of the others.
fn places(cpus: &CpuList, source: Source) -> Vec<CpuList> {
    let each = cpus.iter().map(|cpu| CpuList::from_iter([cpu]));
    match source {
        Source::Timer => each.collect(),
        _ => each.last().into_iter().collect(),
    }
}

fn until_the_handler(lane: &mut Lane<'_>, source: Source, cost: Nanos) -> io::Result<()> {
    let driver = Driver::open().map_err(io::Error::other)?;
    let mut seen = 0;
    lane.begin_at(clock::now());
    while lane.running() {
        driver.arm(match source {
            Source::Device => Interrupter::Device { threaded: false },
            _ => Interrupter::Timer(clock::now() + AHEAD),
        })?;
        let begin = clock::now();
        let arrival = match driver.wait(seen) {
            Ok(arrival) => arrival,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let now = clock::now();
        seen = arrival.sequence;
        // Else it came before the task slept.
        if arrival.served > begin {
            lane.sample(TASK, now, now - arrival.served - cost);
            lane.sample(RESPONSE, now, arrival.served - arrival.due);
        }
        match source {
            // The device leaves time enough between two interrupts.
            Source::Device => lane.pass(now, 0),
            _ => lane.rest(now),
        }
    }
    Ok(())
}

fn until_the_task(lane: &mut Lane<'_>, cost: Nanos) {
    lane.begin_at(clock::now());
    while lane.running() {
        let due = clock::now() + AHEAD;
        let slept = clock::sleep_until(due);
        let now = clock::now();
        if slept {
            lane.sample(0, now, now - due - cost);
        }
        lane.rest(now);
    }
}
