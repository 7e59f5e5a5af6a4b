//! Rhealstone's second component: a task of high priority takes the CPU from one of low priority.

use crate::failure::Result;
use crate::probe::Probe;
use crate::registry::About;
use crate::rig::{Cost, Lane, Partner, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::random::Random;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Lets a timer wake a task of high priority while one of low priority computes in user space.
///
/// From the last moment of the task of low priority to the first of the other: the interrupt, the
/// wake-up, the scheduler and the switch. The preemption time of Rhealstone (Kar and Porter 1989),
/// as Heursch et al. 2001 have it (table 1). The task of low priority does nothing but note the
/// time, in a loop; the other wakes after about 100 us, or at the next tick where timers tick.
/// Subtracted are one reading of the clock and half a round of that loop, the mean of what is
/// between the last time noted and the interrupt: single samples are wrong by up to half a round,
/// which is a figure.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Preemption {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) scheduling: Scheduling,
}

/// How long the task of high priority sleeps. The other one computes in this time, and is woken
/// first where it slept.
const PAUSE: Nanos = Nanos::from_micros(100);

/// What the two tasks have in common.
struct Shared {
    /// Whether the task of low priority sleeps, for there was a rest, and where.
    asleep: AtomicBool,
    bed: Semaphore,
    /// The time that it noted last.
    noted: AtomicU64,
    /// Until when it computes: it must not do so forever.
    until: AtomicU64,
}

impl Probe for Preemption {
    const ABOUT: About = About {
        name: "rhealstone.preemption",
        summary: "a task of high priority preempts one of low priority",
    };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_ranks(Self::ABOUT.name, 1)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("low-priority task's last moment", "high-priority task running")];
        let name = Self::ABOUT.name;
        let (clock, round) = (Cost::of_the_clock(), Cost::of("round of the low-priority loop"));
        let done = rig.on_each_cpu(name, &spans, Rhythm::REPETITIONS, &self.scheduling, |lane| {
            let shared = Shared {
                asleep: AtomicBool::new(false),
                bed: Semaphore::futex(0),
                noted: AtomicU64::new(0),
                until: AtomicU64::new(0),
            };
            let half_a_round = round.measure(|| {
                shared.note();
                Ok(())
            })?;
            let cost = clock.read_the_clock() + Nanos(half_a_round.0 / 2);
            lane.beside(
                self.scheduling.policy_at(-1),
                |partner| shared.compute(partner),
                |lane| shared.preempt(lane, cost),
            )
        });
        rig.keep_cost(name, &clock);
        rig.keep_cost(name, &round);
        done
    }
}

impl Shared {
    fn preempt(&self, lane: &mut Lane<'_>, cost: Nanos) -> io::Result<()> {
        const AT_MOST: Nanos = Nanos::from_secs(1);
        // So that the interrupt does not always find the same place of the loop.
        let mut moments = Random::new(0).map(|n| Nanos(n % 1_000));
        lane.begin_at(clock::now());
        while lane.running() {
            let begin = clock::now();
            let due = begin + PAUSE + moments.next().unwrap_or_default();
            self.until.store((due + AT_MOST).0, Relaxed);
            if self.asleep.swap(false, Relaxed) {
                self.bed.post()?;
            }
            let slept = clock::sleep_until(due);
            let now = clock::now();
            let last = Nanos(self.noted.load(Relaxed));
            self.until.store(0, Relaxed);
            // Else it had not begun, or it was a request to end that woke us.
            if slept && last > begin {
                lane.sample(0, now, now - last - cost);
            }
            lane.rest(now);
        }
        Ok(())
    }

    /// The task of low priority. It sleeps while the other one rests, and goes on where it was
    /// preempted otherwise.
    fn compute(&self, partner: &Partner<'_>) -> io::Result<()> {
        while partner.running() {
            while self.note() {}
            self.asleep.store(true, Relaxed);
            partner.wait_for(|| self.bed.wait())?;
        }
        Ok(())
    }

    /// One round of its loop. Whether there is to be another.
    #[inline(never)]
    fn note(&self) -> bool {
        let now = clock::now().0;
        self.noted.store(now, Relaxed);
        now < self.until.load(Relaxed)
    }
}
