//! The scheduler: how long it takes to switch to a real-time task among many that are runnable.

use super::{Probe, interval};
use crate::driver;
use crate::failure::{Failure, Result};
use crate::needs::Needs;
use crate::registry::About;
use crate::rig::{Lane, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::growth::{self, Growth, Point};
use latlab_core::histogram::Histogram;
use latlab_core::list::List;
use latlab_core::record::Warning;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::driver::Driver;
use std::io;

/// Wakes a task on the last CPU while more and more ordinary tasks are runnable there, and records
/// how long the scheduler takes to switch to it.
///
/// The question of "Preemption concepts, Rhealstone Benchmark and scheduler analysis of Linux 2.4"
/// (Heursch et al. 2001, figures 9 and 10, table 3), where each runnable task made it 260 ns
/// longer. The test driver tells: from the first instruction of `__schedule` to that of
/// `finish_task_switch`, with which the woken task goes on; what its kprobes take is taken off.
/// Where there is no driver, the time from timer expiry to thread running is recorded instead,
/// which has the interrupt, the wake-up and the way back to user space in it; the span says which.
///
/// Each number of tasks is a series and gets its share of the run. Figures of each: mean, min, max,
/// stddev, stddev as a share of the mean, and the mean as a multiple of that with the fewest tasks;
/// of all together the slope in ns per task, and whether the mean is flat, logarithmic or linear in
/// the number of tasks, of those steps that have tasks: with none the scheduler leaves the idle
/// task, which is another way through it.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Schedule {
    /// How many tasks are runnable, one number after the other
    #[arg(long, default_value = "0/10/25/50/75/100/150/200", value_parser = numbers)]
    tasks: List<u32>,
    /// What is measured: the scheduler, by the driver; the dispatch latency; auto: what can be had
    #[arg(long, default_value = "auto")]
    by: By,
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
enum By {
    Auto,
    Driver,
    Dispatch,
}

/// The most tasks: each is a thread with a locked stack.
const MOST: u32 = 1_000;

impl Probe for Schedule {
    const ABOUT: About = About {
        name: "schedule",
        summary: "how long the scheduler takes among many runnable tasks",
    };

    fn needs(&self) -> Needs {
        if self.by == By::Dispatch { Needs::default() } else { Needs::driver() }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        match self.by {
            By::Driver => {
                let refused = |why| driver::refused(why, Self::ABOUT.name, "by=dispatch");
                watching().map(drop).map_err(refused)?;
            }
            By::Auto | By::Dispatch => {}
        }
        self.scheduling.check_bound(Self::ABOUT.name)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let driver = self.driver(rig)?;
        let mut steps: Vec<(u32, Histogram)> = Vec::new();
        let done = rig.in_parts(self.tasks.get().iter().copied(), |rig, tasks| {
            let before = rig.measured.len();
            let done = self.step(rig, tasks, driver.as_ref());
            let measured = rig.measured.get(before).map(|one| one.lane.first().histogram());
            steps.extend(measured.filter(|of| of.count() > 0).map(|of| (tasks, of)));
            done
        });
        report(rig, steps);
        done
    }
}

impl Schedule {
    /// The driver, where it is to tell. Without it, as `auto` allows, why.
    fn driver(&self, rig: &mut Rig<'_>) -> Result<Option<Driver>> {
        match (self.by, watching()) {
            (By::Dispatch, _) => Ok(None),
            (_, Ok(driver)) => Ok(Some(driver)),
            (By::Auto, Err(why)) => {
                let text = format!("schedule measured dispatch latency, not the scheduler: {why}");
                rig.warnings.push(Warning::new("dispatch-latency", text));
                Ok(None)
            }
            (By::Driver, Err(why)) => Err(why),
        }
    }

    /// Measures with so many runnable tasks.
    fn step(&self, rig: &mut Rig<'_>, tasks: u32, driver: Option<&Driver>) -> Result<()> {
        const LIMIT: Nanos = Nanos::from_secs(20);
        let (from, to) = match driver {
            Some(_) => ("__schedule entered", "task switched to"),
            None => ("timer expiry", "thread running"),
        };
        // Spans are static; these are a few bytes for each step.
        let spans = [(from, &*format!("{to}, {tasks} runnable").leak())];
        let last: CpuList = rig.cpus().iter().last().into_iter().collect();
        let limit = Rhythm::Within(self.interval + LIMIT);
        rig.on_each_of(&[last], Self::ABOUT.name, &spans, limit, &self.scheduling, |lane| {
            lane.among(tasks, |lane| {
                if let Some(driver) = driver {
                    return self.watch(lane, driver);
                }
                self.dispatch(lane);
                Ok(())
            })
        })
    }

    fn watch(&self, lane: &mut Lane<'_>, driver: &Driver) -> io::Result<()> {
        let cost = driver.watch()?;
        lane.begin_at(clock::now());
        while lane.running() {
            if !clock::sleep_for(self.interval) {
                continue;
            }
            let now = clock::now();
            let switches = driver.switches()?;
            for took in switches.get() {
                if *took < cost {
                    lane.early();
                }
                lane.sample(0, now, *took - cost);
            }
            lane.pass(now, switches.lost.into());
        }
        Ok(())
    }

    fn dispatch(&self, lane: &mut Lane<'_>) {
        lane.begin_at(clock::now());
        while lane.running() {
            let due = clock::now() + self.interval;
            if clock::sleep_until(due) {
                let now = clock::now();
                lane.sample(0, now, now - due);
                lane.pass(now, 0);
            }
        }
    }
}

/// The driver, able to watch. What it watches by this is over when it is closed.
fn watching() -> Result<Driver> {
    let driver = driver::open()?;
    match driver.watch() {
        Ok(_) => Ok(driver),
        Err(error) => Err(Failure::Unsupported(format!(
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
            rig.figure(name, &format!("{what} at {tasks} tasks"), value, unit);
        };
        let (mean, stddev) = (mean(of), of.stddev().0 as f64);
        figure("mean", mean, "ns");
        figure("min", of.min().0 as f64, "ns");
        figure("max", of.max().0 as f64, "ns");
        figure("stddev", stddev, "ns");
        // Where all that was measured is less than what watching takes, there is no share of it.
        if mean > 0.0 {
            figure("stddev / mean", 100.0 * stddev / mean, "%");
        }
        if base > 0.0 {
            figure("ratio", mean / base, &format!("× {least} tasks"));
        }
        points.push(Point { number: f64::from(*tasks), value: mean });
    }
    if let Some(slope) = growth::slope(&points) {
        rig.figure(name, "slope", slope, "ns per task");
    }
    points.retain(|point| point.number > 0.0);
    if let (Some(growth), Some(slope)) = (Growth::of(&points), growth::slope(&points)) {
        let name_of = format!("growth from {} tasks on: {}", points[0].number, growth.word());
        rig.figure(name, &name_of, slope, "ns per task");
    }
}

/// Reads numbers of tasks.
fn numbers(text: &str) -> std::result::Result<List<u32>, String> {
    let number = |word: &str| match word.parse() {
        Ok(number) if number <= MOST => Ok(number),
        _ => Err(format!("'{word}' is no number of tasks: write some of 0 to {MOST}, as 0/50/200")),
    };
    List::read(text, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tasks_are_read_or_refused_in_a_sentence() {
        assert_eq!(numbers("0/10/200").unwrap().get(), [0, 10, 200]);
        assert!(numbers("0/x").unwrap_err().starts_with("'x' is no number of tasks"));
        assert!(numbers("").unwrap_err().contains("as 0/50/200"));
        assert!(numbers("1001").unwrap_err().contains("0 to 1000"));
    }
}
