//! Signals: time from sending one until the waiting task runs.

use super::Probe;
use crate::rig::{Cost, Pacing, Rig, Sampler, Scheduling, SecondTask};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::{clock, sched, signal};
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Measures the time from sending a signal until the higher-priority task that waits for it runs.
///
/// Tasks in a ring send the signal on, each to the next. There are two series: from sending to
/// running of the task that preempts the sender, and once around the ring through all tasks, which
/// is what rt-tests' signaltest measures. The tasks wait with sigwaitinfo and send with tgkill. One
/// reading of the clock is subtracted.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Signal {
    /// Number of tasks in the ring, on each CPU
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=64))]
    tasks: u16,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

const WAKE_UP: usize = 0;
const ROUND: usize = 1;

/// The ring of tasks, and when its last task sent the signal.
struct Relay {
    /// Thread IDs; the first task is the measuring one. 0 until a task has started.
    threads: Vec<AtomicI32>,
    sent: AtomicU64,
}

impl Describe for Signal {
    const ABOUT: About =
        About { name: "signal", summary: "time from sending a signal until the waiting task runs" };
}

impl Probe for Signal {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_priorities(Self::ABOUT.name, 1)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [
            ("signal sent", "task of higher priority running"),
            ("signal sent", "it has come round through all tasks"),
        ];
        let clock = Cost::of_clock_read();
        let name = Self::ABOUT.name;
        let done =
            rig.on_each_cpu(name, &spans, Pacing::REPETITIONS, &self.scheduling, |sampler| {
                let cost = clock.measure_clock_read();
                let relay = Relay {
                    threads: (0..self.tasks).map(|_| AtomicI32::new(0)).collect(),
                    sent: AtomicU64::new(0),
                };
                relay.join(0);
                self.with_tasks_from(sampler, &relay, 1, cost)
            });
        rig.add_cost(name, &clock);
        done
    }
}

impl Signal {
    /// Starts the tasks from this index on, and measures.
    fn with_tasks_from(
        &self,
        sampler: &mut Sampler<'_>,
        relay: &Relay,
        index: usize,
        cost: Nanos,
    ) -> io::Result<()> {
        if index == relay.threads.len() {
            return relay.measure(sampler, cost);
        }
        sampler.with_second_task(
            self.scheduling.policy_with_offset(-1),
            |task| relay.pass_on(task, index),
            |sampler| self.with_tasks_from(sampler, relay, index + 1, cost),
        )
    }
}

impl Relay {
    fn join(&self, index: usize) {
        self.threads[index].store(sched::thread_id(), Relaxed);
    }

    /// Returns the thread ID of the task after this one.
    fn next(&self, index: usize) -> i32 {
        self.threads[(index + 1) % self.threads.len()].load(Relaxed)
    }

    fn measure(&self, sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
        const STEP: Nanos = Nanos::from_millis(1);
        let all_have_started = || {
            clock::wait_for(STEP)?;
            Ok(self.threads.iter().all(|thread| thread.load(Relaxed) != 0))
        };
        if !sampler.wait_for(all_have_started)? {
            return Ok(());
        }
        sampler.start_at(clock::now());
        while sampler.running() {
            let begin = clock::now();
            signal::send_to_thread(self.next(0));
            if !sampler.wait_for(signal::await_thread_signal)? {
                return Ok(());
            }
            let now = clock::now();
            sampler.record(ROUND, now, now - begin - cost);
            sampler.record(WAKE_UP, now, now - Nanos(self.sent.load(Relaxed)) - cost);
            sampler.advance_and_pause(now);
        }
        Ok(())
    }

    /// Body of each task but the measuring one.
    fn pass_on(&self, task: &SecondTask<'_>, index: usize) -> io::Result<()> {
        self.join(index);
        while task.wait_for(signal::await_thread_signal)? {
            let next = self.next(index);
            self.sent.store(clock::now().0, Relaxed);
            signal::send_to_thread(next);
        }
        Ok(())
    }
}
