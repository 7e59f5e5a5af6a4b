//! Rhealstone's sixth component: a message goes from one task to another.

use super::check_objects;
use crate::failure::Result;
use crate::probe::Probe;
use crate::registry::About;
use crate::rig::{Cost, Lane, Partner, Rhythm, Rig, Scheduling, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::queue::Queue;
use latlab_sys::semaphore::Semaphore;
use latlab_sys::{clock, namespace};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Sends a message to a task of higher priority that waits for it.
///
/// From before the sending of 64 bytes until the other task has them: the intertask message passing
/// time of Rhealstone (Kar and Porter 1989), as Heursch et al. 2001 have it (table 1). System V's
/// queue, as in the paper, POSIX's, a pipe and a pair of Unix sockets (`SOCK_SEQPACKET`) take turns in
/// one loop. Subtracted is one reading of the clock; what it costs to send and receive a message
/// for which nobody waits is a figure. The queues lie in an IPC namespace of their own, which needs
/// root: kind=pipe or kind=socket do not.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Message {
    /// Which ways for messages
    #[arg(long, default_value = "all")]
    kind: Choice,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    All,
    SystemV,
    Posix,
    Pipe,
    Socket,
}

/// A way for messages, and what its series and its figure are called.
struct Kind {
    choice: Choice,
    span: Span,
    make: fn() -> io::Result<Queue>,
    alone: &'static str,
}

/// All of them; that of the paper first.
static KINDS: [Kind; 4] = [
    Kind {
        choice: Choice::SystemV,
        span: ("message sent to System V queue", "received from System V queue"),
        make: Queue::system_v,
        alone: "System V queue, nobody waits",
    },
    Kind {
        choice: Choice::Posix,
        span: ("message sent to POSIX queue", "received from POSIX queue"),
        make: Queue::posix,
        alone: "POSIX queue, nobody waits",
    },
    Kind {
        choice: Choice::Pipe,
        span: ("message written to pipe", "read from pipe"),
        make: Queue::pipe,
        alone: "pipe, nobody waits",
    },
    Kind {
        choice: Choice::Socket,
        span: ("message written to Unix socket", "read from Unix socket"),
        make: Queue::socket,
        alone: "Unix socket, nobody waits",
    },
];

/// What the two tasks have in common.
struct Shared {
    queues: Vec<Queue>,
    /// Whose turn it is.
    turn: AtomicUsize,
    /// Lets the sender send.
    send: Semaphore,
}

impl Probe for Message {
    const ABOUT: About = About {
        name: "rhealstone.message",
        summary: "a message goes to a task of higher priority",
    };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_ranks(Self::ABOUT.name, 1)?;
        if !self.in_own_namespace() {
            return Ok(());
        }
        let kinds = self.kinds();
        check_objects(Self::ABOUT.name, "kind=pipe or kind=socket", || {
            kinds.iter().try_for_each(|kind| (kind.make)().map(drop))
        })
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let kinds = self.kinds();
        let spans: Vec<Span> = kinds.iter().map(|kind| kind.span).collect();
        let clock = Cost::of_the_clock();
        let alone: Vec<Cost> = kinds.iter().map(|kind| Cost::of(kind.alone)).collect();
        let name = Self::ABOUT.name;
        let done = rig.on_each_cpu(name, &spans, Rhythm::REPETITIONS, &self.scheduling, |lane| {
            if self.in_own_namespace() {
                namespace::own_ipc()?;
            }
            let shared = Shared {
                queues: kinds.iter().map(|kind| (kind.make)()).collect::<io::Result<_>>()?,
                turn: AtomicUsize::new(0),
                send: Semaphore::futex(0),
            };
            for (queue, alone) in shared.queues.iter().zip(&alone) {
                alone.measure(|| queue.send(Nanos(0)).and_then(|()| queue.receive()).map(drop))?;
            }
            let cost = clock.read_the_clock();
            lane.beside(
                self.scheduling.policy_at(-1),
                |partner| shared.send(partner),
                |lane| shared.receive(lane, cost),
            )
        });
        alone.iter().chain([&clock]).for_each(|cost| rig.keep_cost(name, cost));
        done
    }
}

impl Message {
    /// The component with all kinds.
    pub(super) fn all(scheduling: Scheduling) -> Message {
        Message { kind: Choice::All, scheduling }
    }

    fn kinds(&self) -> Vec<&'static Kind> {
        let wanted = |kind: &&Kind| self.kind == Choice::All || self.kind == kind.choice;
        KINDS.iter().filter(wanted).collect()
    }

    fn in_own_namespace(&self) -> bool {
        matches!(self.kind, Choice::All | Choice::SystemV | Choice::Posix)
    }
}

impl Shared {
    fn receive(&self, lane: &mut Lane<'_>, cost: Nanos) -> io::Result<()> {
        lane.begin_at(clock::now());
        while lane.running() {
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
                lane.wait_for(receive)?;
                now = clock::now();
                let Some(sent) = sent else { return Ok(()) };
                lane.sample(turn, now, now - sent - cost);
            }
            lane.rest(now);
        }
        Ok(())
    }

    /// The sender.
    fn send(&self, partner: &Partner<'_>) -> io::Result<()> {
        while partner.wait_for(|| self.send.wait())? {
            self.queues[self.turn.load(Relaxed)].send(clock::now())?;
        }
        Ok(())
    }
}
