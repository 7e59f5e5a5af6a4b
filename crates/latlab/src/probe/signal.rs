//! Signals: how soon a task that waits for one runs.

use super::Probe;
use crate::failure::Result;
use crate::registry::About;
use crate::rig::{Cost, Lane, Partner, Rhythm, Rig, Scheduling};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::{clock, sched, signal};
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Sends a signal round a ring of tasks, each of which wakes the next.
///
/// Two series: from the sending to the running of the task that waits, which has a higher priority
/// than the sender and takes the CPU from it, and all the way round through the tasks, which is
/// what rt-tests' signaltest measures. They wait with sigwaitinfo, and send with tgkill. Subtracted
/// is one reading of the clock.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Signal {
    /// How many tasks are in the ring, on each CPU
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=64))]
    tasks: u16,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

const WAKE_UP: usize = 0;
const ROUND: usize = 1;

/// The tasks, and when the last of them sent its signal.
struct Relay {
    /// The kernel's numbers; the first is the one that measures.
    threads: Vec<AtomicI32>,
    sent: AtomicU64,
}

impl Probe for Signal {
    const ABOUT: About =
        About { name: "signal", summary: "how soon a task that waits for a signal runs" };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_ranks(Self::ABOUT.name, 1)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [
            ("signal sent", "task of higher priority running"),
            ("signal sent", "it has come round through all tasks"),
        ];
        let clock = Cost::of_the_clock();
        let name = Self::ABOUT.name;
        let done = rig.on_each_cpu(name, &spans, Rhythm::REPETITIONS, &self.scheduling, |lane| {
            let cost = clock.read_the_clock();
            let relay = Relay {
                threads: (0..self.tasks).map(|_| AtomicI32::new(0)).collect(),
                sent: AtomicU64::new(0),
            };
            relay.join(0);
            self.beside_the_rest(lane, &relay, 1, cost)
        });
        rig.keep_cost(name, &clock);
        done
    }
}

impl Signal {
    /// Starts the tasks from this one on, and measures.
    fn beside_the_rest(
        &self,
        lane: &mut Lane<'_>,
        relay: &Relay,
        place: usize,
        cost: Nanos,
    ) -> io::Result<()> {
        if place == relay.threads.len() {
            return relay.measure(lane, cost);
        }
        lane.beside(
            self.scheduling.policy_at(-1),
            |partner| relay.pass_on(partner, place),
            |lane| self.beside_the_rest(lane, relay, place + 1, cost),
        )
    }
}

impl Relay {
    fn join(&self, place: usize) {
        self.threads[place].store(sched::thread_id(), Relaxed);
    }

    /// The task after this one, if it has come.
    fn next(&self, place: usize) -> i32 {
        self.threads[(place + 1) % self.threads.len()].load(Relaxed)
    }

    fn measure(&self, lane: &mut Lane<'_>, cost: Nanos) -> io::Result<()> {
        const STEP: Nanos = Nanos::from_millis(1);
        let all_are_here = || {
            clock::sleep_for(STEP);
            Ok(self.threads.iter().all(|thread| thread.load(Relaxed) != 0))
        };
        if !lane.wait_for(all_are_here)? {
            return Ok(());
        }
        lane.begin_at(clock::now());
        while lane.running() {
            let begin = clock::now();
            signal::pass_to(self.next(0));
            if !lane.wait_for(|| Ok(signal::await_passed()))? {
                return Ok(());
            }
            let now = clock::now();
            lane.sample(ROUND, now, now - begin - cost);
            lane.sample(WAKE_UP, now, now - Nanos(self.sent.load(Relaxed)) - cost);
            lane.rest(now);
        }
        Ok(())
    }

    /// Each of the others.
    fn pass_on(&self, partner: &Partner<'_>, place: usize) -> io::Result<()> {
        self.join(place);
        while partner.wait_for(|| Ok(signal::await_passed()))? {
            let next = self.next(place);
            self.sent.store(clock::now().0, Relaxed);
            signal::pass_to(next);
        }
        Ok(())
    }
}
