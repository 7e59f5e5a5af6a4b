//! Rhealstone component 3: from an interrupt to its handler, and on to a task.

use crate::probe::Probe;
use crate::rig::{Cost, Pacing, Rig, Sampler, Scheduling, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::record::{Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::driver;
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::driver::{Driver, InterruptSource as DriverInterrupt};
use std::io;

/// Measures the time from an interrupt until its handler runs, and from there until a task runs.
///
/// There are two series: from the interrupt to the first instruction of its handler (the interrupt
/// response time of Heursch et al. 2001, table 2; Rhealstone's interrupt latency, Kar and Porter
/// 1989), and from there to the task that waits for it. Only latlab's test driver knows both ends
/// of the first: with `source=driver` its timer interrupts, with `source=device` QEMU's `edu`
/// device, ten times per second, which is exact in the laboratory. With `source=timer` the task
/// sleeps on its own timer, and the only series is from timer expiry to the task. `auto` uses the
/// driver if it is loaded, its device if timers fire at ticks only (`highres=off`: there the
/// driver's timer is late by up to a tick), and otherwise the timer, with a warning. Guests load
/// the driver unless there are no headers of their kernel to build it with, which source=timer does
/// not need. The driver has one interrupt, which arrives on the last of the CPUs. One reading of
/// the clock is subtracted if a task reads it, nothing if the handler does.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Interrupt {
    /// Source of the interrupt
    #[arg(long, default_value = "auto")]
    pub(super) source: InterruptSource,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) scheduling: Scheduling,
}

/// Source of the interrupt.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InterruptSource {
    /// The best available one.
    Auto,
    /// The test driver's timer.
    Driver,
    /// The test driver's device, which QEMU emulates.
    Device,
    /// The task's own timer, whose handler is not timed.
    Timer,
}

/// Time from arming the interrupt until it arrives. The task sleeps by then.
const AHEAD: Nanos = Nanos::from_micros(100);

const RESPONSE: usize = 0;
const TASK: usize = 1;

impl Describe for Interrupt {
    const ABOUT: About = About {
        name: "rhealstone.interrupt",
        summary: "interrupt to its handler's first instruction, and to a task",
    };
}

impl Probe for Interrupt {
    fn needs(&self) -> Needs {
        if self.source == InterruptSource::Timer { Needs::default() } else { Needs::interrupt() }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_priorities(Self::ABOUT.name, 0)?;
        let available = match self.source {
            InterruptSource::Driver => driver::open().map(drop),
            InterruptSource::Device => driver::check_device(),
            InterruptSource::Auto | InterruptSource::Timer => Ok(()),
        };
        available.map_err(|why| driver::refused(why, Self::ABOUT.name, "source=timer"))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let (source, fallback) = self.source.resolved();
        let timer = [("timer expiry", "task running")];
        let driver = [
            ("interrupt due", "handler's first instruction"),
            ("handler's first instruction", "task running"),
        ];
        let spans: &[Span] = if source == InterruptSource::Timer { &timer } else { &driver };
        let clock = Cost::of_clock_read();
        let body = |sampler: &mut Sampler<'_>| {
            let cost = clock.measure_clock_read();
            match source {
                InterruptSource::Timer => measure_timer(sampler, cost),
                _ => measure_handler(sampler, source, cost),
            }
        };
        let name = Self::ABOUT.name;
        let cpu_sets = cpu_sets(rig.cpus(), source);
        let done =
            rig.on_cpu_sets(&cpu_sets, name, spans, Pacing::REPETITIONS, &self.scheduling, body);
        rig.add_cost(name, &clock);
        if let Some(why) = fallback {
            let text = format!(
                "rhealstone.interrupt measured from timer expiry to the task, because only the test \
                 driver knows when the handler ran: {why}"
            );
            rig.warnings.push(Warning::new(WarningCode::NoTestDriver, text));
        }
        done
    }
}

impl InterruptSource {
    /// Returns the source to use, and why the driver is not available if `auto` falls back to the
    /// timer.
    fn resolved(self) -> (InterruptSource, Option<Failure>) {
        if self != InterruptSource::Auto {
            return (self, None);
        }
        let ticks = clock::resolution() > Nanos(1);
        match (driver::open(), driver::check_device()) {
            (Err(why), _) => (InterruptSource::Timer, Some(why)),
            (Ok(_), Ok(())) if ticks => (InterruptSource::Device, None),
            (Ok(_), _) => (InterruptSource::Driver, None),
        }
    }
}

/// Returns the CPUs of each task. The driver has one interrupt; the last CPU is chosen since the
/// first one handles most of the others.
fn cpu_sets(cpus: &CpuList, source: InterruptSource) -> Vec<CpuList> {
    let each = cpus.iter().map(|cpu| CpuList::from_iter([cpu]));
    match source {
        InterruptSource::Timer => each.collect(),
        _ => each.last().into_iter().collect(),
    }
}

fn measure_handler(
    sampler: &mut Sampler<'_>,
    source: InterruptSource,
    cost: Nanos,
) -> io::Result<()> {
    let driver = Driver::open().map_err(io::Error::other)?;
    let mut seen = 0;
    sampler.start_at(clock::now());
    while sampler.running() {
        driver.arm(match source {
            InterruptSource::Device => DriverInterrupt::Device { threaded: false },
            _ => DriverInterrupt::Timer(clock::now() + AHEAD),
        })?;
        let begin = clock::now();
        let arrival = match driver.wait(seen) {
            Ok(arrival) => arrival,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let now = clock::now();
        seen = arrival.sequence;
        // Otherwise the interrupt came before the task slept.
        if arrival.served > begin {
            sampler.record(TASK, now, now - arrival.served - cost);
            sampler.record(RESPONSE, now, arrival.served - arrival.due);
        }
        match source {
            // There is enough idle time between two interrupts of the device.
            InterruptSource::Device => sampler.advance(now, 0),
            _ => sampler.advance_and_pause(now),
        }
    }
    Ok(())
}

fn measure_timer(sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
    sampler.start_at(clock::now());
    while sampler.running() {
        let due = clock::now() + AHEAD;
        let slept = clock::wait_until(due)?;
        let now = clock::now();
        if slept {
            sampler.record(0, now, now - due - cost);
        }
        sampler.advance_and_pause(now);
    }
    Ok(())
}
