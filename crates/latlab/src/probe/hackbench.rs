//! Groups of tasks that send each other messages: how long all of them take, and what it costs.

use super::Probe;
use crate::failure::Result;
use crate::groups::{self, Groups, Over, Role};
use crate::meter::{self, Meter, Reading};
use crate::registry::About;
use crate::rig::{Lane, Rhythm, Rig, Tasks};
use crate::worker::{Post, Worker};
use latlab_core::cpulist::CpuList;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::gate::Gate;
use latlab_sys::process::{self, SingleThread};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Groups of senders and receivers, in which each sender writes `loops` messages to each receiver:
/// records from the moment at which all of them are let go to that at which the last has ended.
///
/// hackbench (R. Russell, P. Zijlstra, I. Molnar; rt-tests), with which Seo et al. 2009 measure
/// what full preemption costs (figures 2, 3, 7 and table I). `hackbench -g G -f F -l L -s S` of
/// rt-tests is `groups=G,fan=F,loops=L,size=SB` here. Making the tasks is not in the time, taking
/// them away is, as in hackbench. Figures are the messages that pass in a second and, for each
/// repetition, the context switches of all tasks from their beginning to their end, and the
/// misses of the data TLB and of the last-level cache where the processor counts them.
#[derive(Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Hackbench {
    /// Groups
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    groups: u32,
    /// Senders in each group, and as many receivers
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=500))]
    fan: u32,
    /// Messages from each sender to each receiver of its group
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    loops: u32,
    /// Length of a message
    #[arg(long, default_value = "100B", value_parser = groups::length)]
    size: Bytes,
    /// What senders and receivers are
    #[arg(long, default_value = "processes")]
    tasks: Kind,
    /// What messages go through
    #[arg(long, default_value = "sockets")]
    over: Over,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Tasks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Processes,
    Threads,
}

/// What came of one repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Repetition {
    begin: Nanos,
    end: Nanos,
    cost: Reading,
}

impl Probe for Hackbench {
    const ABOUT: About =
        About { name: "hackbench", summary: "how long groups take to send each other messages" };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check()
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let spans = [("all tasks let go", "last task ended")];
        // Ten times what a message takes on a slow machine.
        let patience = Nanos::from_secs(20) + Nanos(self.messages().saturating_mul(100_000));
        let counted = Mutex::new(Vec::new());
        let done = rig.on_all_cpus(
            Self::ABOUT.name,
            &spans,
            Rhythm::Within(patience),
            &self.scheduling.scheduling(),
            |lane| self.repeat(lane, &counted),
        );
        self.report(rig, &counted.into_inner().unwrap_or_else(PoisonError::into_inner));
        done
    }

    fn work(&self, post: &Post) -> io::Result<()> {
        process::allow_many_files()?;
        let message = groups::message(self.size);
        while post.order::<()>()?.is_some() {
            let meter = Meter::start();
            let (begin, end) = match self.tasks {
                Kind::Processes => self.in_processes(post.single(), &message)?,
                Kind::Threads => self.in_threads(&message)?,
            };
            post.say(Repetition { begin, end, cost: meter.read() })?;
        }
        Ok(())
    }
}

impl Hackbench {
    fn groups(&self) -> Groups {
        Groups { number: self.groups, fan: self.fan, over: self.over }
    }

    /// Messages of one repetition.
    fn messages(&self) -> u64 {
        let [groups, fan, loops] = [self.groups, self.fan, self.loops].map(u64::from);
        groups * fan * fan * loops
    }

    fn repeat(&self, lane: &mut Lane<'_>, counted: &Mutex<Vec<Repetition>>) -> io::Result<()> {
        lane.collect();
        let mut worker = Worker::start(Self::ABOUT.name, self, None)?;
        while lane.running() {
            worker.ask(&())?;
            let Some(done) = worker.answer::<Repetition>(lane)? else { break };
            lane.sample(0, done.end, done.end - done.begin);
            lane.pass(done.end, 0);
            if lane.counts() {
                counted.lock().unwrap_or_else(PoisonError::into_inner).push(done);
            }
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure is shown, not counted with")]
    fn report(&self, rig: &mut Rig<'_>, counted: &[Repetition]) {
        let repetitions = counted.len() as u64;
        let time: u64 = counted.iter().map(|one| (one.end - one.begin).0).sum();
        if time > 0 {
            let rate = (repetitions * self.messages()) as f64 * 1e9 / time as f64;
            rig.figure(Self::ABOUT.name, "messages", rate, "per second");
        }
        let costs: Vec<Reading> = counted.iter().map(|one| one.cost.clone()).collect();
        meter::report(rig, Self::ABOUT.name, &costs, repetitions, "per repetition");
    }

    fn in_processes(&self, single: &SingleThread, message: &[u8]) -> io::Result<(Nanos, Nanos)> {
        let gate = Gate::new()?;
        let life = |role| live(self.loops, self.fan, &gate, role, &mut message.to_vec());
        let children = self.groups().fork(single, life)?;
        gate.gather(children.len(), process::all_at_work)?;
        let begin = clock::now();
        gate.open()?;
        process::await_all(children)?;
        Ok((begin, clock::now()))
    }

    /// Threads that can't all be made are left where they wait: the process ends with the error.
    fn in_threads(&self, message: &[u8]) -> io::Result<(Nanos, Nanos)> {
        let gate = Arc::new(Gate::new()?);
        let mut threads = Vec::with_capacity(self.groups().tasks());
        self.groups().start(|role| {
            let (gate, mut message) = (Arc::clone(&gate), message.to_vec());
            let (loops, fan) = (self.loops, self.fan);
            let life = move || live(loops, fan, &gate, role, &mut message);
            let thread = std::thread::Builder::new().stack_size(64 * 1024);
            threads.push(thread.spawn(life)?);
            Ok(())
        })?;
        gate.gather(threads.len(), || Ok(()))?;
        let begin = clock::now();
        gate.open()?;
        let panicked = |_| io::Error::other("a thread that takes part panicked");
        threads.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)?;
        Ok((begin, clock::now()))
    }
}

/// The life of a task: it waits to be let go, and does its part.
fn live(loops: u32, fan: u32, gate: &Gate, role: Role, message: &mut [u8]) -> io::Result<()> {
    gate.wait()?;
    match role {
        Role::Receiver(from) => {
            (0..u64::from(loops) * u64::from(fan)).try_for_each(|_| groups::receive(&from, message))
        }
        Role::Sender(to) => (0..loops).try_for_each(|_| groups::send(&to, message)),
    }
}
