//! Rhealstone's fifth component: a priority inversion, and how it is resolved.

use crate::failure::Result;
use crate::probe::{Probe, check_inheritance};
use crate::registry::About;
use crate::rig::{Cost, Lane, Partner, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::mutex::{Mutex, Protocol};
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Lets a task of high priority need a mutex whose holder is kept from the CPU by a third task.
///
/// The holder has low priority, a task of medium priority computes; then the task of high priority
/// asks for the mutex. From there until it has it, without the time that the holder runs before it
/// unlocks: the deadlock breaking time of Rhealstone (Kar and Porter 1989), which Heursch et al.
/// 2001 could not measure, for Linux had no such mutexes. With priority inheritance
/// (`PTHREAD_PRIO_INHERIT`) the holder runs at once; without, in the second series, only when the
/// medium task has computed for half a millisecond. Once in 32 repetitions is without. Subtracted
/// are two readings of the clock; what it costs to lock and unlock a mutex that is free is a
/// figure. The mutexes are locked with a time limit, whose timer is a part of what is measured.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Deadlock {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) scheduling: Scheduling,
}

/// The series, and the mutexes.
const INHERITED: usize = 0;
const PLAIN: usize = 1;

/// How often the mutex has priority inheritance for each time that it has not.
const SELDOM: u64 = 32;
/// How long the task of medium priority computes, where nothing keeps it from that.
const INVERSION: Nanos = Nanos::from_micros(500);
/// How long the mutex is waited for at most.
const AT_MOST: Nanos = Nanos::from_secs(2);

/// What the three tasks have in common.
struct Shared {
    mutexes: [Mutex; 2],
    /// Whose turn it is.
    turn: AtomicUsize,
    /// Lets the holder lock it, then the task of medium priority run, then that of high priority.
    lock: Semaphore,
    compute: Semaphore,
    request: Semaphore,
    /// How many inversions are over: when one is, there is nothing left to compute for.
    over: AtomicU64,
    /// When the holder went on, and when it unlocked.
    resumed: AtomicU64,
    unlocked: AtomicU64,
}

impl Probe for Deadlock {
    const ABOUT: About = About {
        name: "rhealstone.deadlock",
        summary: "a priority inversion, resolved by priority inheritance and without",
    };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_ranks(Self::ABOUT.name, 2)?;
        check_inheritance(Self::ABOUT.name)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [
            ("held PI mutex requested", "PI mutex obtained"),
            ("held plain mutex requested", "plain mutex obtained"),
        ];
        let (clock, alone) = (Cost::of_the_clock(), Cost::of("PI mutex, nobody waits"));
        let name = Self::ABOUT.name;
        let done = rig.on_each_cpu(name, &spans, Rhythm::REPETITIONS, &self.scheduling, |lane| {
            let shared = Shared::new()?;
            let limit = clock::since_1970() + AT_MOST;
            alone.measure(|| shared.mutexes[INHERITED].lock_until(limit).map(drop))?;
            let cost = clock.read_the_clock();
            let (medium, low) = (self.scheduling.policy_at(-1), self.scheduling.policy_at(-2));
            lane.beside(
                medium,
                |partner| shared.compute(partner),
                |lane| {
                    lane.beside(
                        low,
                        |partner| shared.hold(partner),
                        |lane| shared.request(lane, Nanos(2 * cost.0)),
                    )
                },
            )
        });
        rig.keep_cost(name, &clock);
        rig.keep_cost(name, &alone);
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

    fn request(&self, lane: &mut Lane<'_>, cost: Nanos) -> io::Result<()> {
        lane.begin_at(clock::now());
        while lane.running() {
            if lane.recorded(PLAIN) * SELDOM <= lane.recorded(INHERITED) {
                self.invert(lane, PLAIN, cost)?;
            }
            let now = self.invert(lane, INHERITED, cost)?;
            lane.rest(now);
        }
        Ok(())
    }

    /// The task of high priority, once. When it had the mutex.
    fn invert(&self, lane: &mut Lane<'_>, turn: usize, cost: Nanos) -> io::Result<Nanos> {
        self.turn.store(turn, Relaxed);
        self.lock.post()?;
        if !lane.wait_for(|| self.request.wait())? {
            return Ok(clock::now());
        }
        let limit = clock::since_1970() + AT_MOST;
        let requested = clock::now();
        let held = self.mutexes[turn].lock_until(limit)?;
        let now = clock::now();
        self.over.fetch_add(1, Relaxed);
        drop(held);
        let resumed = Nanos(self.resumed.load(Relaxed));
        let unlocked = Nanos(self.unlocked.load(Relaxed));
        // Else the holder ran although we had not yet asked.
        if resumed > requested {
            lane.sample(turn, now, (resumed - requested) + (now - unlocked) - cost);
        }
        Ok(now)
    }

    /// The task of medium priority: it wakes that of high priority, and computes.
    fn compute(&self, partner: &Partner<'_>) -> io::Result<()> {
        while partner.wait_for(|| self.compute.wait())? {
            let end = clock::now() + INVERSION;
            let over = self.over.load(Relaxed);
            self.request.post()?;
            while self.over.load(Relaxed) == over && clock::now() < end {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// The task of low priority: it locks, and is preempted by that of medium priority.
    fn hold(&self, partner: &Partner<'_>) -> io::Result<()> {
        while partner.wait_for(|| self.lock.wait())? {
            let mutex = &self.mutexes[self.turn.load(Relaxed)];
            let held = mutex.lock_until(clock::since_1970() + AT_MOST)?;
            self.compute.post()?;
            // The task of high priority waits for what is held here.
            self.resumed.store(clock::now().0, Relaxed);
            self.unlocked.store(clock::now().0, Relaxed);
            drop(held);
        }
        Ok(())
    }
}
