//! Rhealstone component 2: a high-priority task preempts a low-priority one.

use crate::probe::Probe;
use crate::rig::{Cost, Pacing, Rig, Sampler, Scheduling, SecondTask};
use latlab_core::cpulist::CpuList;
use latlab_core::random::Random;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Measures the time from the last instant of a preempted low-priority task until the high-priority
/// task runs.
///
/// A timer wakes the high-priority task while the low-priority task computes in user space; the
/// latency consists of the interrupt, the wake-up, the scheduler and the switch. This is the
/// preemption time of Rhealstone (Kar and Porter 1989), as Heursch et al. 2001 define it (table 1).
/// The low-priority task notes the time in a loop; the high-priority task wakes up after about 100
/// us, or at the next tick without high-resolution timers. One reading of the clock and half a
/// round of that loop are subtracted, the mean time between the last note and the interrupt. Single
/// samples are off by up to half a round, which is a figure.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Preemption {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) scheduling: Scheduling,
}

/// Time that the high-priority task sleeps, while the low-priority task is woken and computes.
const PAUSE: Nanos = Nanos::from_micros(100);

/// State shared by the two tasks.
struct Shared {
    /// Whether the low-priority task sleeps on `wake` because of a pause.
    asleep: AtomicBool,
    wake: Semaphore,
    /// The last time that it noted.
    noted: AtomicU64,
    /// Time at which it stops computing at the latest.
    until: AtomicU64,
}

impl Describe for Preemption {
    const ABOUT: About = About {
        name: "rhealstone.preemption",
        summary: "a high-priority task preempts a low-priority one",
    };
}

impl Probe for Preemption {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_priorities(Self::ABOUT.name, 1)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("low-priority task's last moment", "high-priority task running")];
        let name = Self::ABOUT.name;
        let (clock, round) = (Cost::of_clock_read(), Cost::new("round of the low-priority loop"));
        let done =
            rig.on_each_cpu(name, &spans, Pacing::REPETITIONS, &self.scheduling, |sampler| {
                let shared = Shared {
                    asleep: AtomicBool::new(false),
                    wake: Semaphore::futex(0),
                    noted: AtomicU64::new(0),
                    until: AtomicU64::new(0),
                };
                let half_a_round = round.measure(|| {
                    shared.note();
                    Ok(())
                })?;
                let cost = clock.measure_clock_read() + Nanos(half_a_round.0 / 2);
                sampler.with_second_task(
                    self.scheduling.policy_with_offset(-1),
                    |task| shared.compute(task),
                    |sampler| shared.preempt(sampler, cost),
                )
            });
        rig.add_cost(name, &clock);
        rig.add_cost(name, &round);
        done
    }
}

impl Shared {
    fn preempt(&self, sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
        const LONGEST: Nanos = Nanos::from_secs(1);
        // Varies where in the loop the interrupt hits.
        let mut jitter = Random::new(0).map(|n| Nanos(n % 1_000));
        sampler.start_at(clock::now());
        while sampler.running() {
            let begin = clock::now();
            let due = begin + PAUSE + jitter.next().unwrap_or_default();
            self.until.store((due + LONGEST).0, Relaxed);
            if self.asleep.swap(false, Relaxed) {
                self.wake.post()?;
            }
            let slept = clock::wait_until(due)?;
            let now = clock::now();
            let last = Nanos(self.noted.load(Relaxed));
            self.until.store(0, Relaxed);
            // Otherwise the low-priority task had not started, or a request to stop ended the
            // sleep.
            if slept && last > begin {
                sampler.record(0, now, now - last - cost);
            }
            sampler.advance_and_pause(now);
        }
        Ok(())
    }

    /// Body of the low-priority task. It sleeps during a pause of the measuring task; otherwise it
    /// continues where it was preempted.
    fn compute(&self, task: &SecondTask<'_>) -> io::Result<()> {
        while task.running() {
            while self.note() {}
            self.asleep.store(true, Relaxed);
            task.wait_for(|| self.wake.wait())?;
        }
        Ok(())
    }

    /// One round of the low-priority loop. Returns whether to go on.
    #[inline(never)]
    fn note(&self) -> bool {
        let now = clock::now().0;
        self.noted.store(now, Relaxed);
        now < self.until.load(Relaxed)
    }
}
