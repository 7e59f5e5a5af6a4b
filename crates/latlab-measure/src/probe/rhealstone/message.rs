//! Rhealstone component 6: a message passes from one task to another.

use super::objects::{self, Object, ObjectKind};
use crate::probe::Probe;
use crate::rig::{Cost, Pacing, Rig, Sampler, Scheduling, SecondTask, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::clock;
use latlab_sys::queue::Queue;
use latlab_sys::semaphore::Semaphore;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Measures the time from sending a message until the higher-priority task that waits for it has
/// received it.
///
/// A message has 64 bytes. This is the intertask message passing time of Rhealstone (Kar and Porter
/// 1989), as Heursch et al. 2001 define it (table 1). System V queues, as in the paper, POSIX
/// queues, pipes and pairs of Unix sockets (`SOCK_SEQPACKET`) are measured alternately in one loop.
/// One reading of the clock is subtracted; the cost of sending and receiving a message for which no
/// task waits is a figure. The queues are created in an IPC namespace of their own, which needs
/// root; kind=pipe and kind=socket do not.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Message {
    /// Kind of message transport
    #[arg(long, default_value = "all", value_parser = objects::kind_parser(&QUEUES))]
    kind: ObjectKind,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

/// All kinds, the paper's first.
static QUEUES: [Object<Queue>; 4] = [
    Object {
        kind: ObjectKind::SystemV,
        span: ("message sent to System V queue", "received from System V queue"),
        make: Queue::system_v,
        uncontended: "System V queue, nobody waits",
        in_namespace: true,
    },
    Object {
        kind: ObjectKind::Posix,
        span: ("message sent to POSIX queue", "received from POSIX queue"),
        make: Queue::posix,
        uncontended: "POSIX queue, nobody waits",
        in_namespace: true,
    },
    Object {
        kind: ObjectKind::Pipe,
        span: ("message written to pipe", "read from pipe"),
        make: Queue::pipe,
        uncontended: "pipe, nobody waits",
        in_namespace: false,
    },
    Object {
        kind: ObjectKind::Socket,
        span: ("message written to Unix socket", "read from Unix socket"),
        make: Queue::socket,
        uncontended: "Unix socket, nobody waits",
        in_namespace: false,
    },
];

/// State shared by the two tasks.
struct Shared {
    queues: Vec<Queue>,
    /// Index of the queue that is measured next.
    turn: AtomicUsize,
    /// Tells the sender to send.
    send: Semaphore,
}

impl Describe for Message {
    const ABOUT: About =
        About { name: "rhealstone.message", summary: "a message passes to a higher-priority task" };
}

impl Probe for Message {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_priorities(Self::ABOUT.name, 1)?;
        objects::check(Self::ABOUT.name, "kind=pipe or kind=socket", &self.selected()?)
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let selected = self.selected()?;
        let spans: Vec<Span> = selected.iter().map(|object| object.span).collect();
        let clock = Cost::of_clock_read();
        let uncontended: Vec<Cost> =
            selected.iter().map(|object| Cost::new(object.uncontended)).collect();
        let name = Self::ABOUT.name;
        let done =
            rig.on_each_cpu(name, &spans, Pacing::REPETITIONS, &self.scheduling, |sampler| {
                objects::enter_namespace(&selected)?;
                let shared = Shared::new(&selected)?;
                for (queue, cost) in shared.queues.iter().zip(&uncontended) {
                    cost.measure(|| queue.send(Nanos(0)).and_then(|()| queue.receive()).map(drop))?;
                }
                let cost = clock.measure_clock_read();
                sampler.with_second_task(
                    self.scheduling.policy_with_offset(-1),
                    |task| shared.send(task),
                    |sampler| shared.receive(sampler, cost),
                )
            });
        uncontended.iter().chain([&clock]).for_each(|cost| rig.add_cost(name, cost));
        done
    }
}

impl Message {
    /// Returns the component with all kinds.
    pub(super) fn all(scheduling: Scheduling) -> Message {
        Message { kind: ObjectKind::All, scheduling }
    }

    fn selected(&self) -> Result<Vec<&'static Object<Queue>>> {
        objects::select(Self::ABOUT.name, &QUEUES, self.kind)
    }
}

impl Shared {
    fn new(objects: &[&Object<Queue>]) -> io::Result<Shared> {
        Ok(Shared {
            queues: objects.iter().map(|object| (object.make)()).collect::<io::Result<_>>()?,
            turn: AtomicUsize::new(0),
            send: Semaphore::futex(0),
        })
    }

    fn receive(&self, sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
        sampler.start_at(clock::now());
        while sampler.running() {
            let mut now = Nanos(0);
            for (turn, queue) in self.queues.iter().enumerate().rev() {
                self.turn.store(turn, Relaxed);
                self.send.post()?;
                let mut sent = None;
                let receive = || {
                    queue.receive().map(|time| {
                        sent = time;
                        sent.is_some()
                    })
                };
                sampler.wait_for(receive)?;
                now = clock::now();
                let Some(sent) = sent else { return Ok(()) };
                sampler.record(turn, now, now - sent - cost);
            }
            sampler.advance_and_pause(now);
        }
        Ok(())
    }

    /// Body of the sender.
    fn send(&self, task: &SecondTask<'_>) -> io::Result<()> {
        while task.wait_for(|| self.send.wait())? {
            self.queues[self.turn.load(Relaxed)].send(clock::now())?;
        }
        Ok(())
    }
}
