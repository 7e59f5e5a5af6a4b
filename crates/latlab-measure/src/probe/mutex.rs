//! Mutexes: time from unlocking until the next owner runs.

use super::{Probe, check_inheritance};
use crate::rig::{Cost, Pacing, Rig, Sampler, Scheduling, SecondTask};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::mutex::{self, Protocol};
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Measures the time from unlocking a mutex until the higher-priority task that waits for it runs.
///
/// This is what rt-tests' ptsematest measures. It is measured alternately for mutexes with priority
/// inheritance, whose holder drops its inherited priority (`pi_stress` checks that it does; here it
/// is timed), and for plain ones. One reading of the clock is subtracted. The mutexes are locked
/// with a timeout.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Mutex {
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

/// Timeout of locking a mutex.
const TIMEOUT: Nanos = Nanos::from_secs(2);

/// State shared by the two tasks.
struct Shared {
    mutexes: [mutex::Mutex; 2],
    /// Index of the mutex that is measured next.
    turn: AtomicUsize,
    /// Tells the holder to lock it, and that it is locked.
    lock: Semaphore,
    held: Semaphore,
    /// Time of the unlocking.
    unlocked: AtomicU64,
}

impl Describe for Mutex {
    const ABOUT: About =
        About { name: "mutex", summary: "time from unlocking a mutex until its next owner runs" };
}

impl Probe for Mutex {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_priorities(Self::ABOUT.name, 1)?;
        check_inheritance(Self::ABOUT.name)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [
            ("PI mutex unlocked", "next owner of PI mutex running"),
            ("plain mutex unlocked", "next owner of plain mutex running"),
        ];
        let clock = Cost::of_clock_read();
        let name = Self::ABOUT.name;
        let done =
            rig.on_each_cpu(name, &spans, Pacing::REPETITIONS, &self.scheduling, |sampler| {
                let shared = Shared {
                    mutexes: [
                        mutex::Mutex::new(Protocol::Inherit)?,
                        mutex::Mutex::new(Protocol::None)?,
                    ],
                    turn: AtomicUsize::new(0),
                    lock: Semaphore::futex(0),
                    held: Semaphore::futex(0),
                    unlocked: AtomicU64::new(0),
                };
                let cost = clock.measure_clock_read();
                sampler.with_second_task(
                    self.scheduling.policy_with_offset(-1),
                    |task| shared.unlock(task),
                    |sampler| shared.wait(sampler, cost),
                )
            });
        rig.add_cost(name, &clock);
        done
    }
}

impl Shared {
    fn wait(&self, sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
        sampler.start_at(clock::now());
        while sampler.running() {
            let mut now = Nanos(0);
            for (turn, mutex) in self.mutexes.iter().enumerate().rev() {
                self.turn.store(turn, Relaxed);
                self.lock.post()?;
                if !sampler.wait_for(|| self.held.wait())? {
                    return Ok(());
                }
                let limit = clock::wall_clock() + TIMEOUT;
                let asked = clock::now();
                let held = mutex.lock_until(limit)?;
                now = clock::now();
                drop(held);
                let unlocked = Nanos(self.unlocked.load(Relaxed));
                // Otherwise the mutex was free before this task waited for it.
                if unlocked > asked {
                    sampler.record(turn, now, now - unlocked - cost);
                }
            }
            sampler.advance_and_pause(now);
        }
        Ok(())
    }

    /// Body of the holder.
    fn unlock(&self, task: &SecondTask<'_>) -> io::Result<()> {
        while task.wait_for(|| self.lock.wait())? {
            let mutex = &self.mutexes[self.turn.load(Relaxed)];
            let held = mutex.lock_until(clock::wall_clock() + TIMEOUT)?;
            self.held.post()?;
            // The measuring task has run and waits for this mutex.
            self.unlocked.store(clock::now().0, Relaxed);
            drop(held);
        }
        Ok(())
    }
}
