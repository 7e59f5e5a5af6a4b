//! Rhealstone component 5: the resolution of a priority inversion.

use crate::probe::{Probe, check_inheritance};
use crate::rig::{Cost, Pacing, Rig, Sampler, Scheduling, SecondTask};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::mutex::{Mutex, Protocol};
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Measures the time from requesting a mutex in a priority inversion until it is obtained.
///
/// A low-priority task holds the mutex and is preempted by a computing medium-priority task; then
/// the high-priority task requests the mutex. The time that the holder runs before it unlocks is
/// left out. This is the deadlock breaking time of Rhealstone (Kar and Porter 1989), which Heursch
/// et al. 2001 could not measure because Linux had no such mutexes. With priority inheritance
/// (`PTHREAD_PRIO_INHERIT`) the holder runs at once; without it, in the second series, only after
/// the medium-priority task has computed for half a millisecond. One in 32 repetitions is without.
/// Two readings of the clock are subtracted; the cost of locking and unlocking a free mutex is a
/// figure. The mutexes are locked with a timeout, whose timer is part of the measured time.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Deadlock {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) scheduling: Scheduling,
}

/// Indices of the series and the mutexes.
const INHERITED: usize = 0;
const PLAIN: usize = 1;

/// Repetitions with priority inheritance for each one without.
const INHERITED_PER_PLAIN: u64 = 32;
/// Longest time that the medium-priority task computes.
const INVERSION: Nanos = Nanos::from_micros(500);
/// Timeout of locking a mutex.
const TIMEOUT: Nanos = Nanos::from_secs(2);

/// State shared by the three tasks.
struct Shared {
    mutexes: [Mutex; 2],
    /// Index of the mutex that is measured next.
    turn: AtomicUsize,
    /// Lets the holder lock the mutex, then the medium-priority task compute, then the
    /// high-priority task request the mutex.
    lock: Semaphore,
    compute: Semaphore,
    request: Semaphore,
    /// Number of inversions that are resolved, at which the medium-priority task stops computing.
    over: AtomicU64,
    /// Times at which the holder resumed and unlocked.
    resumed: AtomicU64,
    unlocked: AtomicU64,
}

impl Describe for Deadlock {
    const ABOUT: About = About {
        name: "rhealstone.deadlock",
        summary: "a priority inversion, with and without priority inheritance",
    };
}

impl Probe for Deadlock {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_priorities(Self::ABOUT.name, 2)?;
        check_inheritance(Self::ABOUT.name)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [
            ("held PI mutex requested", "PI mutex obtained"),
            ("held plain mutex requested", "plain mutex obtained"),
        ];
        let (clock, alone) = (Cost::of_clock_read(), Cost::new("PI mutex, nobody waits"));
        let name = Self::ABOUT.name;
        let done =
            rig.on_each_cpu(name, &spans, Pacing::REPETITIONS, &self.scheduling, |sampler| {
                let shared = Shared::new()?;
                let limit = clock::wall_clock() + TIMEOUT;
                alone.measure(|| shared.mutexes[INHERITED].lock_until(limit).map(drop))?;
                let cost = clock.measure_clock_read();
                let (medium, low) = (
                    self.scheduling.policy_with_offset(-1),
                    self.scheduling.policy_with_offset(-2),
                );
                sampler.with_second_task(
                    medium,
                    |task| shared.compute(task),
                    |sampler| {
                        sampler.with_second_task(
                            low,
                            |task| shared.hold(task),
                            |sampler| shared.request(sampler, Nanos(2 * cost.0)),
                        )
                    },
                )
            });
        rig.add_cost(name, &clock);
        rig.add_cost(name, &alone);
        done
    }
}

impl Shared {
    fn new() -> io::Result<Shared> {
        Ok(Shared {
            mutexes: [Mutex::new(Protocol::Inherit)?, Mutex::new(Protocol::None)?],
            turn: AtomicUsize::new(0),
            lock: Semaphore::futex(0),
            compute: Semaphore::futex(0),
            request: Semaphore::futex(0),
            over: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            unlocked: AtomicU64::new(0),
        })
    }

    fn request(&self, sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
        sampler.start_at(clock::now());
        while sampler.running() {
            if sampler.recorded(PLAIN) * INHERITED_PER_PLAIN <= sampler.recorded(INHERITED) {
                self.invert(sampler, PLAIN, cost)?;
            }
            let now = self.invert(sampler, INHERITED, cost)?;
            sampler.advance_and_pause(now);
        }
        Ok(())
    }

    /// One inversion, seen by the high-priority task. Returns when it obtained the mutex.
    fn invert(&self, sampler: &mut Sampler<'_>, turn: usize, cost: Nanos) -> io::Result<Nanos> {
        self.turn.store(turn, Relaxed);
        self.lock.post()?;
        if !sampler.wait_for(|| self.request.wait())? {
            return Ok(clock::now());
        }
        let limit = clock::wall_clock() + TIMEOUT;
        let requested = clock::now();
        let held = self.mutexes[turn].lock_until(limit)?;
        let now = clock::now();
        self.over.fetch_add(1, Relaxed);
        drop(held);
        let resumed = Nanos(self.resumed.load(Relaxed));
        let unlocked = Nanos(self.unlocked.load(Relaxed));
        // Otherwise the holder resumed before this task requested the mutex.
        if resumed > requested {
            sampler.record(turn, now, (resumed - requested) + (now - unlocked) - cost);
        }
        Ok(now)
    }

    /// Body of the medium-priority task: wakes the high-priority one and computes.
    fn compute(&self, task: &SecondTask<'_>) -> io::Result<()> {
        while task.wait_for(|| self.compute.wait())? {
            let end = clock::now() + INVERSION;
            let over = self.over.load(Relaxed);
            self.request.post()?;
            while self.over.load(Relaxed) == over && clock::now() < end {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Body of the low-priority task: locks the mutex and is preempted by the medium-priority one.
    fn hold(&self, task: &SecondTask<'_>) -> io::Result<()> {
        while task.wait_for(|| self.lock.wait())? {
            let mutex = &self.mutexes[self.turn.load(Relaxed)];
            let held = mutex.lock_until(clock::wall_clock() + TIMEOUT)?;
            self.compute.post()?;
            // The high-priority task waits for this mutex.
            self.resumed.store(clock::now().0, Relaxed);
            self.unlocked.store(clock::now().0, Relaxed);
            drop(held);
        }
        Ok(())
    }
}
