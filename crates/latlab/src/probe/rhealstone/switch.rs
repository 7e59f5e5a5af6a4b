//! Rhealstone's first component: the switch between two active tasks of equal priority.

use crate::failure::Result;
use crate::probe::Probe;
use crate::registry::About;
use crate::rig::{Cost, Lane, Partner, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::yield_now;

/// Lets two active tasks of equal priority give the CPU to each other with `sched_yield`.
///
/// From one task's `sched_yield` to the other's running after its own, both ways. The task switch
/// time of Rhealstone (Kar and Porter 1989), which Heursch et al. 2001 could not measure: the
/// `sched_yield` of Linux 2.4 did nothing for real-time tasks. The tasks are threads, so that no
/// address space is switched. Subtracted is one reading of the clock; what `sched_yield` costs with
/// nobody to yield to is a figure, and is not subtracted, as in Kar's definition.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Switch {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) scheduling: Scheduling,
}

/// What the two tasks have in common.
struct Shared {
    /// When one of them left the CPU last.
    left: AtomicU64,
    /// How long it took the partner to get it, the last time.
    taken: AtomicU64,
    /// How often the measuring task has left it.
    rounds: AtomicU64,
    /// Whether the partner sleeps, for the other one does, and where.
    asleep: AtomicBool,
    bed: Semaphore,
}

/// Says that the partner came from its bed and not from its own `sched_yield`.
const NO_SWITCH: u64 = u64::MAX;

impl Probe for Switch {
    const ABOUT: About = About {
        name: "rhealstone.switch",
        summary: "switch between two active tasks of equal priority",
    };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_ranks(Self::ABOUT.name, 0)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("task yields", "other task of equal priority running")];
        let name = Self::ABOUT.name;
        let (clock, alone) =
            (Cost::of_the_clock(), Cost::of("sched_yield with nobody to yield to"));
        let done = rig.on_each_cpu(name, &spans, Rhythm::REPETITIONS, &self.scheduling, |lane| {
            let cost = clock.read_the_clock();
            alone.measure(|| {
                yield_now();
                Ok(())
            })?;
            self.measure(lane, cost)
        });
        rig.keep_cost(name, &clock);
        rig.keep_cost(name, &alone);
        done
    }
}

impl Switch {
    fn measure(&self, lane: &mut Lane<'_>, cost: Nanos) -> io::Result<()> {
        let shared = Shared {
            left: AtomicU64::new(0),
            taken: AtomicU64::new(NO_SWITCH),
            rounds: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            bed: Semaphore::futex(0),
        };
        lane.beside(
            self.scheduling.policy_at(0),
            |partner| shared.yield_back(partner),
            |lane| shared.yield_and_record(lane, cost),
        )
    }
}

impl Shared {
    fn yield_and_record(&self, lane: &mut Lane<'_>, cost: Nanos) -> io::Result<()> {
        lane.begin_at(clock::now());
        while lane.running() {
            if self.asleep.swap(false, Relaxed) {
                self.bed.post()?;
            }
            self.rounds.store(self.rounds.load(Relaxed) + 1, Relaxed);
            let left = clock::now();
            self.left.store(left.0, Relaxed);
            yield_now();
            let now = clock::now();
            let returned = Nanos(self.left.load(Relaxed));
            if returned != left {
                lane.yielded();
            }
            let taken = self.taken.swap(NO_SWITCH, Relaxed);
            if taken != NO_SWITCH {
                lane.sample(0, now, Nanos(taken) - cost);
                lane.sample(0, now, now - returned - cost);
            }
            lane.rest(now);
        }
        Ok(())
    }

    /// The partner. Where nothing happened while it had yielded, the other task rests: then it
    /// sleeps as well, for it would keep everybody else from the CPU.
    fn yield_back(&self, partner: &Partner<'_>) -> io::Result<()> {
        while partner.running() {
            let seen = self.rounds.load(Relaxed);
            self.left.store(clock::now().0, Relaxed);
            yield_now();
            let now = clock::now();
            if self.rounds.load(Relaxed) == seen {
                self.asleep.store(true, Relaxed);
                partner.wait_for(|| self.bed.wait())?;
                continue;
            }
            self.taken.store((now - Nanos(self.left.load(Relaxed))).0, Relaxed);
        }
        Ok(())
    }
}
