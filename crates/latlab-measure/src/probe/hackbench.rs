//! Groups of tasks that send messages to each other: time and cost of all messages.

use super::Probe;
use crate::rig::{Pacing, Rig, Sampler, TaskScheduling};
use crate::workload::hackbench::{self, Groups, Role, Transport};
use crate::workload::perf_counters::{self, Meter, Reading};
use crate::workload::worker::{Worker, WorkerChannel};
use latlab_core::cpulist::CpuList;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_part::failure::{Result, lock, unpoisoned};
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::mark;
use latlab_sys::process::{self, SingleThread};
use latlab_sys::start_barrier::StartBarrier;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Arc, Mutex};

/// Measures the time from releasing groups of senders and receivers until the last task has ended.
///
/// Each sender writes `loops` messages to each receiver of its group. This is hackbench (R.
/// Russell, P. Zijlstra, I. Molnar; rt-tests), with which Seo et al. 2009 measure the cost of full
/// preemption (figures 2, 3, 7 and table I). `hackbench -g G -f F -l L -s S` of rt-tests is
/// `groups=G,fan=F,loops=L,size=SB` here. As in hackbench, the time includes the exit of the tasks
/// but not their creation. Figures are the messages per second and, per repetition, the context
/// switches of all tasks over their whole lifetime, and the misses of the data TLB and of the
/// last-level cache, if the processor counts them. In the laboratory `misses=modelled` counts those of
/// two modelled processors, a Pentium 4 and a Skylake, for everything that the CPU does during the
/// repetition (`plugin/README.md`).
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Hackbench {
    /// Number of groups
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    groups: u32,
    /// Number of senders in each group, and number of receivers
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=500))]
    fan: u32,
    /// Messages from each sender to each receiver of its group
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    loops: u32,
    /// Length of a message
    #[arg(long, default_value = "100B", value_parser = hackbench::message_length)]
    size: Bytes,
    /// Kind of tasks
    #[arg(long, default_value = "processes")]
    tasks: TaskKind,
    /// Transport of the messages
    #[arg(long, default_value = "sockets")]
    over: Transport,
    /// Misses of caches and TLBs: those that the processor counts, or those of models
    #[arg(long, default_value = "counted")]
    misses: Misses,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: TaskScheduling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TaskKind {
    Processes,
    Threads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Misses {
    Counted,
    Modelled,
}

/// Times and cost of one repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Repetition {
    begin: Nanos,
    end: Nanos,
    cost: Reading,
}

/// All repetitions that counted: a long run has too many to keep each.
#[derive(Default)]
struct Total {
    count: u64,
    time: Nanos,
    cost: Option<Reading>,
}

impl Total {
    fn add(&mut self, one: Repetition) {
        self.count += 1;
        self.time = self.time + (one.end - one.begin);
        match &mut self.cost {
            Some(cost) => cost.add(one.cost),
            None => self.cost = Some(one.cost),
        }
    }
}

impl Describe for Hackbench {
    const ABOUT: About =
        About { name: "hackbench", summary: "time for groups of tasks to send all their messages" };
}

impl Probe for Hackbench {
    fn needs(&self) -> Needs {
        Needs { models: self.misses == Misses::Modelled, ..Needs::default() }
    }

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("all tasks let go", "last task ended")];
        // 100 us is ten times the duration of a message on a slow machine.
        let timeout = Nanos::from_secs(20) + Nanos(self.messages().saturating_mul(100_000));
        let total = Mutex::new(Total::default());
        let done = rig.on_all_cpus(
            Self::ABOUT.name,
            &spans,
            Pacing::BackToBack(timeout),
            &self.scheduling.scheduling(),
            |sampler| self.repeat(sampler, &total),
        );
        self.report(rig, &unpoisoned(total.into_inner()));
        done
    }

    fn run_worker(&self, channel: &WorkerChannel) -> io::Result<()> {
        process::raise_file_limit()?;
        let message = hackbench::message(self.size);
        while channel.next_order::<()>()?.is_some() {
            let meter = Meter::start();
            let (begin, end) = match self.tasks {
                TaskKind::Processes => self.in_processes(channel.single(), &message)?,
                TaskKind::Threads => self.in_threads(&message)?,
            };
            channel.answer(Repetition { begin, end, cost: meter.read() })?;
        }
        Ok(())
    }
}

impl Hackbench {
    fn groups(&self) -> Groups {
        Groups { number: self.groups, fan: self.fan, over: self.over }
    }

    /// Returns the number of messages of one repetition.
    fn messages(&self) -> u64 {
        let [groups, fan, loops] = [self.groups, self.fan, self.loops].map(u64::from);
        groups * fan * fan * loops
    }

    fn repeat(&self, sampler: &mut Sampler<'_>, total: &Mutex<Total>) -> io::Result<()> {
        sampler.set_collecting();
        let modelled = self.misses == Misses::Modelled;
        let mut worker = Worker::start(Self::ABOUT.name, self, None)?;
        while sampler.running() {
            if modelled {
                mark::begin_counting();
            }
            worker.send(&())?;
            let Some(done) = worker.receive::<Repetition>(sampler)? else { break };
            sampler.record(0, done.end, done.end - done.begin);
            sampler.advance(done.end, 0);
            if sampler.is_counting() {
                if modelled {
                    mark::end_counting();
                }
                lock(total).add(done);
            }
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure is shown, not counted with")]
    fn report(&self, rig: &mut Rig<'_>, total: &Total) {
        if total.time.0 > 0 {
            let rate = (total.count * self.messages()) as f64 * 1e9 / total.time.0 as f64;
            rig.add_figure(Self::ABOUT.name, "messages", rate, "per second");
        }
        if let Some(cost) = &total.cost {
            perf_counters::report(rig, Self::ABOUT.name, cost, total.count, "per repetition");
        }
    }

    fn in_processes(&self, single: &SingleThread, message: &[u8]) -> io::Result<(Nanos, Nanos)> {
        let barrier = StartBarrier::new()?;
        let body = |role| run_task(self.loops, self.fan, &barrier, role, &mut message.to_vec());
        let children = self.groups().fork(single, body)?;
        barrier.gather(children.len(), process::check_all_running)?;
        let begin = clock::now();
        barrier.open()?;
        process::wait_for_all(children)?;
        Ok((begin, clock::now()))
    }

    /// If not all threads can be created, the others are left waiting: the error ends the process.
    fn in_threads(&self, message: &[u8]) -> io::Result<(Nanos, Nanos)> {
        let barrier = Arc::new(StartBarrier::new()?);
        let mut threads = Vec::with_capacity(self.groups().tasks());
        self.groups().start(|role| {
            let (barrier, mut message) = (Arc::clone(&barrier), message.to_vec());
            let (loops, fan) = (self.loops, self.fan);
            let body = move || run_task(loops, fan, &barrier, role, &mut message);
            let thread = std::thread::Builder::new().stack_size(64 * 1024);
            threads.push(thread.spawn(body)?);
            Ok(())
        })?;
        barrier.gather(threads.len(), || Ok(()))?;
        let begin = clock::now();
        barrier.open()?;
        let panicked = |_| io::Error::other("a thread of the workload panicked");
        threads.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)?;
        Ok((begin, clock::now()))
    }
}

/// Body of a task: waits for the start and plays its role.
fn run_task(
    loops: u32,
    fan: u32,
    barrier: &StartBarrier,
    role: Role,
    message: &mut [u8],
) -> io::Result<()> {
    barrier.wait()?;
    match role {
        Role::Receiver(from) => (0..u64::from(loops) * u64::from(fan))
            .try_for_each(|_| hackbench::receive(&from, message)),
        Role::Sender(to) => (0..loops).try_for_each(|_| hackbench::send(&to, message)),
    }
}
