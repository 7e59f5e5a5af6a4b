//! Rhealstone component 1: the switch between two active tasks of equal priority.

use crate::probe::Probe;
use crate::rig::{Cost, Pacing, Rig, Sampler, Scheduling, SecondTask};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::yield_now;

/// Measures the time from a task's `sched_yield` until the other task of equal priority runs.
///
/// The two tasks yield to each other, and both directions are recorded. This is the task switch
/// time of Rhealstone (Kar and Porter 1989), which Heursch et al. 2001 could not measure: the
/// `sched_yield` of Linux 2.4 had no effect for real-time tasks. The tasks are threads, so that the
/// address space is not switched. One reading of the clock is subtracted. The cost of a
/// `sched_yield` without another task to yield to is a figure and, as in Kar's definition, not
/// subtracted.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Switch {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) scheduling: Scheduling,
}

/// State shared by the two tasks.
struct Shared {
    /// Time at which one of them last yielded.
    yielded: AtomicU64,
    /// Time that the last switch to the second task took, or [`NO_SWITCH`].
    switch: AtomicU64,
    /// Number of yields of the measuring task.
    rounds: AtomicU64,
    /// Whether the second task sleeps on `wake` because the measuring task sleeps.
    asleep: AtomicBool,
    wake: Semaphore,
}

/// Value of [`Shared::switch`] if the second task came from a sleep and not from `sched_yield`.
const NO_SWITCH: u64 = u64::MAX;

impl Describe for Switch {
    const ABOUT: About = About {
        name: "rhealstone.switch",
        summary: "switch between two active tasks of equal priority",
    };
}

impl Probe for Switch {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_priorities(Self::ABOUT.name, 0)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("task yields", "other task of equal priority running")];
        let name = Self::ABOUT.name;
        let (clock, alone) =
            (Cost::of_clock_read(), Cost::new("sched_yield with nobody to yield to"));
        let done =
            rig.on_each_cpu(name, &spans, Pacing::REPETITIONS, &self.scheduling, |sampler| {
                let cost = clock.measure_clock_read();
                alone.measure(|| {
                    yield_now();
                    Ok(())
                })?;
                self.measure(sampler, cost)
            });
        rig.add_cost(name, &clock);
        rig.add_cost(name, &alone);
        done
    }
}

impl Switch {
    fn measure(&self, sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
        let shared = Shared {
            yielded: AtomicU64::new(0),
            switch: AtomicU64::new(NO_SWITCH),
            rounds: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            wake: Semaphore::futex(0),
        };
        sampler.with_second_task(
            self.scheduling.policy_with_offset(0),
            |task| shared.yield_back(task),
            |sampler| shared.yield_and_record(sampler, cost),
        )
    }
}

impl Shared {
    fn yield_and_record(&self, sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
        sampler.start_at(clock::now());
        while sampler.running() {
            if self.asleep.swap(false, Relaxed) {
                self.wake.post()?;
            }
            self.rounds.store(self.rounds.load(Relaxed) + 1, Relaxed);
            let yielded = clock::now();
            self.yielded.store(yielded.0, Relaxed);
            yield_now();
            let now = clock::now();
            let other_yielded = Nanos(self.yielded.load(Relaxed));
            if other_yielded != yielded {
                sampler.note_yield();
            }
            let switch = self.switch.swap(NO_SWITCH, Relaxed);
            if switch != NO_SWITCH {
                sampler.record(0, now, Nanos(switch) - cost);
                sampler.record(0, now, now - other_yielded - cost);
            }
            sampler.advance_and_pause(now);
        }
        Ok(())
    }

    /// Body of the second task. If the measuring task did not run while this one yielded, it
    /// pauses; then this task sleeps, too, because it would starve all others on the CPU.
    fn yield_back(&self, task: &SecondTask<'_>) -> io::Result<()> {
        while task.running() {
            let seen = self.rounds.load(Relaxed);
            self.yielded.store(clock::now().0, Relaxed);
            yield_now();
            let now = clock::now();
            if self.rounds.load(Relaxed) == seen {
                self.asleep.store(true, Relaxed);
                task.wait_for(|| self.wake.wait())?;
                continue;
            }
            self.switch.store((now - Nanos(self.yielded.load(Relaxed))).0, Relaxed);
        }
        Ok(())
    }
}
