//! Mutexes: how soon after unlocking the next owner runs.

use super::{Probe, check_inheritance};
use crate::failure::Result;
use crate::registry::About;
use crate::rig::{Cost, Lane, Partner, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::mutex::{self, Protocol};
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Unlocks a mutex for which a task of higher priority waits.
///
/// From before the unlocking until the next owner runs: what rt-tests' ptsematest asks, of mutexes
/// with priority inheritance, whose holder loses the priority that it had inherited (`pi_stress`
/// makes sure that it does; here it is timed), and in turns with it of plain ones. Subtracted is
/// one reading of the clock. The mutexes are locked with a time limit.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Mutex {
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

/// How long the mutex is waited for at most.
const AT_MOST: Nanos = Nanos::from_secs(2);

/// What the two tasks have in common.
struct Shared {
    mutexes: [mutex::Mutex; 2],
    /// Whose turn it is.
    turn: AtomicUsize,
    /// Lets the holder lock it, and says that it has.
    lock: Semaphore,
    held: Semaphore,
    /// When it was unlocked.
    unlocked: AtomicU64,
}

impl Probe for Mutex {
    const ABOUT: About =
        About { name: "mutex", summary: "how soon after unlocking the next owner runs" };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_ranks(Self::ABOUT.name, 1)?;
        check_inheritance(Self::ABOUT.name)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [
            ("PI mutex unlocked", "next owner of PI mutex running"),
            ("plain mutex unlocked", "next owner of plain mutex running"),
        ];
        let clock = Cost::of_the_clock();
        let name = Self::ABOUT.name;
        let done = rig.on_each_cpu(name, &spans, Rhythm::REPETITIONS, &self.scheduling, |lane| {
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
            let cost = clock.read_the_clock();
            lane.beside(
                self.scheduling.policy_at(-1),
                |partner| shared.unlock(partner),
                |lane| shared.wait(lane, cost),
            )
        });
        rig.keep_cost(name, &clock);
        done
    }
}

impl Shared {
    fn wait(&self, lane: &mut Lane<'_>, cost: Nanos) -> io::Result<()> {
        lane.begin_at(clock::now());
        while lane.running() {
            let mut now = Nanos(0);
            for (turn, mutex) in self.mutexes.iter().enumerate().rev() {
                self.turn.store(turn, Relaxed);
                self.lock.post()?;
                if !lane.wait_for(|| self.held.wait())? {
                    return Ok(());
                }
                let limit = clock::since_1970() + AT_MOST;
                let asked = clock::now();
                let held = mutex.lock_until(limit)?;
                now = clock::now();
                drop(held);
                let unlocked = Nanos(self.unlocked.load(Relaxed));
                // Else it was free before anybody waited.
                if unlocked > asked {
                    lane.sample(turn, now, now - unlocked - cost);
                }
            }
            lane.rest(now);
        }
        Ok(())
    }

    /// The holder.
    fn unlock(&self, partner: &Partner<'_>) -> io::Result<()> {
        while partner.wait_for(|| self.lock.wait())? {
            let mutex = &self.mutexes[self.turn.load(Relaxed)];
            let held = mutex.lock_until(clock::since_1970() + AT_MOST)?;
            self.held.post()?;
            // The other task has run, and waits for what is held here.
            self.unlocked.store(clock::now().0, Relaxed);
            drop(held);
        }
        Ok(())
    }
}
