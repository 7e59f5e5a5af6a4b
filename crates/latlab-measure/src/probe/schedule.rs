//! The scheduler: time to switch to a real-time task while many tasks are runnable.

use super::{Probe, interval};
use crate::rig::{Pacing, Rig, Sampler, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::growth::{self, Growth, GrowthPoint};
use latlab_core::histogram::Histogram;
use latlab_core::list::List;
use latlab_core::record::{Warning, WarningCode};
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::driver;
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::driver::Driver;
use std::io;

/// Measures the time from entering the scheduler until it has switched to a woken real-time task,
/// on the last CPU, while a growing number of ordinary tasks is runnable there.
///
/// This is the measurement of "Preemption concepts, Rhealstone Benchmark and scheduler analysis of
/// Linux 2.4" (Heursch et al. 2001, figures 9 and 10, table 3), where each runnable task added 260
/// ns. The test driver takes the times, from the first instruction of `__schedule` to that of
/// `finish_task_switch`, with which the woken task continues; the cost of its kprobes is
/// subtracted. Without the driver, the time from timer expiry until the thread runs is recorded
/// instead, which includes the interrupt, the wake-up and the return to user space. The span says
/// which it is.
///
/// Each number of tasks is a series and gets an equal share of the run. Figures of each series:
/// mean, min, max, stddev, stddev as a share of the mean, and the mean as a multiple of that with
/// the fewest tasks. Figures of all series: the slope in ns per task, and whether the mean is
/// flat, logarithmic or linear in the number of tasks. Steps without tasks are left out of
/// the latter, because the scheduler then leaves the idle task, which is another code path.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Schedule {
    /// Numbers of runnable tasks, measured one after the other
    #[arg(long, default_value = "0/10/25/50/75/100/150/200", value_parser = numbers)]
    tasks: List<u32>,
    /// Method: driver times the scheduler, dispatch the latency from timer to task; auto: driver
    /// if available
    #[arg(long, default_value = "auto")]
    by: Method,
    /// Time between two wake-ups
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
enum Method {
    Auto,
    Driver,
    Dispatch,
}

/// Maximum number of tasks: each is a thread with a locked stack.
const MAX_TASKS: u32 = 1_000;

impl Describe for Schedule {
    const ABOUT: About =
        About { name: "schedule", summary: "time to switch between tasks while many are runnable" };
}

impl Probe for Schedule {
    fn needs(&self) -> Needs {
        if self.by == Method::Dispatch { Needs::default() } else { Needs::driver() }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        match self.by {
            Method::Driver => {
                let refused = |why| driver::refused(why, Self::ABOUT.name, "by=dispatch");
                open_watching().map(drop).map_err(refused)?;
            }
            Method::Auto | Method::Dispatch => {}
        }
        self.scheduling.check_pinned(Self::ABOUT.name)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let driver = self.driver(rig)?;
        let mut steps: Vec<(u32, Histogram)> = Vec::new();
        let done = rig.for_each_step(self.tasks.get().iter().copied(), |rig, tasks| {
            let before = rig.measured.len();
            let done = self.step(rig, tasks, driver.as_ref());
            let measured = rig.measured.get(before).map(|one| one.recording.first().histogram());
            steps.extend(measured.filter(|of| of.count() > 0).map(|of| (tasks, of)));
            done
        });
        report(rig, steps);
        done
    }
}

impl Schedule {
    /// Returns the driver if it takes the times. If `auto` falls back to the dispatch latency, adds
    /// a warning that says why.
    fn driver(&self, rig: &mut Rig<'_>) -> Result<Option<Driver>> {
        match (self.by, open_watching()) {
            (Method::Dispatch, _) => Ok(None),
            (_, Ok(driver)) => Ok(Some(driver)),
            (Method::Auto, Err(why)) => {
                let text = format!("schedule measured dispatch latency, not the scheduler: {why}");
                rig.warnings.push(Warning::new(WarningCode::DispatchLatency, text));
                Ok(None)
            }
            (Method::Driver, Err(why)) => Err(why),
        }
    }

    /// Measures with this number of runnable tasks.
    fn step(&self, rig: &mut Rig<'_>, tasks: u32, driver: Option<&Driver>) -> Result<()> {
        const TIMEOUT: Nanos = Nanos::from_secs(20);
        let (from, to) = match driver {
            Some(_) => ("__schedule entered", "task switched to"),
            None => ("timer expiry", "thread running"),
        };
        // Spans are static: this leaks a few bytes per step.
        let spans = [(from, &*format!("{to}, {tasks} runnable").leak())];
        let last: CpuList = rig.cpus().iter().last().into_iter().collect();
        let pause = self.interval;
        let pacing = Pacing::AfterPauses { pause, timeout: pause + TIMEOUT };
        rig.on_cpu_sets(&[last], Self::ABOUT.name, &spans, pacing, &self.scheduling, |sampler| {
            sampler.with_runnable_tasks(tasks, |sampler| {
                if let Some(driver) = driver {
                    return self.measure_scheduler(sampler, driver);
                }
                self.measure_dispatch(sampler)
            })
        })
    }

    fn measure_scheduler(&self, sampler: &mut Sampler<'_>, driver: &Driver) -> io::Result<()> {
        let cost = driver.watch()?;
        sampler.start_at(clock::now());
        while sampler.running() {
            if !clock::wait_for(self.interval)? {
                continue;
            }
            let now = clock::now();
            let switches = driver.switches()?;
            for took in switches.get() {
                if *took < cost {
                    sampler.count_below_zero();
                }
                sampler.record(0, now, *took - cost);
            }
            sampler.advance(now, switches.lost.into());
        }
        Ok(())
    }

    fn measure_dispatch(&self, sampler: &mut Sampler<'_>) -> io::Result<()> {
        sampler.start_at(clock::now());
        while sampler.running() {
            let due = clock::now() + self.interval;
            if clock::wait_until(due)? {
                let now = clock::now();
                sampler.record(0, now, now - due);
                sampler.advance(now, 0);
            }
        }
        Ok(())
    }
}

/// Opens the driver, with its probes in the scheduler until it is closed.
fn open_watching() -> Result<Driver> {
    let driver = driver::open()?;
    match driver.watch() {
        Ok(_) => Ok(driver),
        Err(error) => Err(Failure::unsupported(format!(
            "the test driver can't watch the scheduler ({error}): it needs a kernel with \
             CONFIG_KPROBES and CONFIG_KALLSYMS"
        ))),
    }
}

#[expect(clippy::cast_precision_loss, reason = "what is lost is below what can be measured")]
fn report(rig: &mut Rig<'_>, mut steps: Vec<(u32, Histogram)>) {
    let name = Schedule::ABOUT.name;
    let mean = |of: &Histogram| of.sum() as f64 / of.count() as f64;
    steps.sort_by_key(|(tasks, _)| *tasks);
    let Some((least, base)) = steps.first().map(|(tasks, of)| (*tasks, mean(of))) else { return };
    let mut points = Vec::new();
    for (tasks, of) in &steps {
        let mut figure = |what: &str, value, unit| {
            rig.add_figure(name, &format!("{what} at {tasks} tasks"), value, unit);
        };
        let (mean, stddev) = (mean(of), of.stddev().0 as f64);
        figure("mean", mean, "ns");
        figure("min", of.min().0 as f64, "ns");
        figure("max", of.max().0 as f64, "ns");
        figure("stddev", stddev, "ns");
        // The mean is 0 if all times are below the cost of the kprobes.
        if mean > 0.0 {
            figure("stddev / mean", 100.0 * stddev / mean, "%");
        }
        if base > 0.0 {
            figure("ratio", mean / base, &format!("× {least} tasks"));
        }
        points.push(GrowthPoint { number: f64::from(*tasks), value: mean });
    }
    if let Some(slope) = growth::slope(&points) {
        rig.add_figure(name, "slope", slope, "ns per task");
    }
    points.retain(|point| point.number > 0.0);
    if let (Some(growth), Some(slope)) = (Growth::of(&points), growth::slope(&points)) {
        let name_of = format!("growth from {} tasks on: {}", points[0].number, growth.word());
        rig.add_figure(name, &name_of, slope, "ns per task");
    }
}

/// Parses numbers of tasks.
fn numbers(text: &str) -> std::result::Result<List<u32>, String> {
    let number = |word: &str| match word.parse() {
        Ok(number) if number <= MAX_TASKS => Ok(number),
        _ => Err(format!(
            "'{word}' is not a number of tasks: write numbers from 0 to {MAX_TASKS}, as 0/50/200"
        )),
    };
    List::read(text, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_numbers_are_parsed_or_refused() {
        assert_eq!(numbers("0/10/200").unwrap().get(), [0, 10, 200]);
        assert!(numbers("0/x").unwrap_err().starts_with("'x' is not a number of tasks"));
        assert!(numbers("").unwrap_err().contains("as 0/50/200"));
        assert!(numbers("1001").unwrap_err().contains("0 to 1000"));
    }
}
