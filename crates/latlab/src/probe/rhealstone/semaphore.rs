//! Rhealstone's fourth component: a semaphore goes from a task of low priority to one of high.

use super::check_objects;
use crate::failure::Result;
use crate::probe::Probe;
use crate::registry::About;
use crate::rig::{Cost, Lane, Partner, Rhythm, Rig, Scheduling, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_sys::{clock, namespace, semaphore};
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Lets a task of high priority request a semaphore that one of low priority holds.
///
/// From the request until it has the semaphore, without the time that the holder runs before it
/// releases it: the semaphore shuffle time of Rhealstone (Kar and Porter 1989), as Heursch et al.
/// 2001 have it (table 2). That is two switches, a wait and a release. System V's semaphore, as in
/// the paper, POSIX's and a bare futex take turns in one loop. Subtracted are two readings of the
/// clock; what it costs to take and release one for which nobody waits is a figure. System V's
/// lies in an IPC namespace of its own, which needs root: kind=posix or kind=futex do not.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Semaphore {
    /// Which semaphores
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
    Futex,
}

/// A kind of semaphore, and what its series and its figure are called.
struct Kind {
    choice: Choice,
    span: Span,
    make: fn(u16) -> io::Result<semaphore::Semaphore>,
    alone: &'static str,
}

/// All of them; that of the paper first.
static KINDS: [Kind; 3] = [
    Kind {
        choice: Choice::SystemV,
        span: ("held System V semaphore requested", "System V semaphore obtained"),
        make: semaphore::Semaphore::system_v,
        alone: "System V semaphore, nobody waits",
    },
    Kind {
        choice: Choice::Posix,
        span: ("held POSIX semaphore requested", "POSIX semaphore obtained"),
        make: semaphore::Semaphore::posix,
        alone: "POSIX semaphore, nobody waits",
    },
    Kind {
        choice: Choice::Futex,
        span: ("held futex requested", "futex obtained"),
        make: |value| Ok(semaphore::Semaphore::futex(value)),
        alone: "futex, nobody waits",
    },
];

/// What the two tasks have in common.
struct Shared {
    semaphores: Vec<semaphore::Semaphore>,
    /// Whose turn it is.
    turn: AtomicUsize,
    /// Lets the holder take it, and says that it has.
    take: semaphore::Semaphore,
    held: semaphore::Semaphore,
    /// When the holder went on, the other task being asleep, and when it released.
    resumed: AtomicU64,
    released: AtomicU64,
}

impl Probe for Semaphore {
    const ABOUT: About = About {
        name: "rhealstone.semaphore",
        summary: "a semaphore goes from its holder to a task of higher priority",
    };

    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_ranks(Self::ABOUT.name, 1)?;
        if !self.of_system_v() {
            return Ok(());
        }
        let instead = "kind=posix or kind=futex";
        check_objects(Self::ABOUT.name, instead, || semaphore::Semaphore::system_v(1).map(drop))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| self.wants(kind)).collect();
        let spans: Vec<Span> = kinds.iter().map(|kind| kind.span).collect();
        let clock = Cost::of_the_clock();
        let alone: Vec<Cost> = kinds.iter().map(|kind| Cost::of(kind.alone)).collect();
        let name = Self::ABOUT.name;
        let done = rig.on_each_cpu(name, &spans, Rhythm::REPETITIONS, &self.scheduling, |lane| {
            if self.of_system_v() {
                namespace::own_ipc()?;
            }
            let shared = Shared::new(&kinds)?;
            for (semaphore, alone) in shared.semaphores.iter().zip(&alone) {
                alone.measure(|| semaphore.wait().and_then(|_| semaphore.post()))?;
            }
            let cost = clock.read_the_clock();
            lane.beside(
                self.scheduling.policy_at(-1),
                |partner| shared.hold(partner),
                |lane| shared.request(lane, Nanos(2 * cost.0)),
            )
        });
        alone.iter().chain([&clock]).for_each(|cost| rig.keep_cost(name, cost));
        done
    }
}

impl Semaphore {
    /// The component with all kinds.
    pub(super) fn all(scheduling: Scheduling) -> Semaphore {
        Semaphore { kind: Choice::All, scheduling }
    }

    fn wants(&self, kind: &Kind) -> bool {
        self.kind == Choice::All || self.kind == kind.choice
    }

    fn of_system_v(&self) -> bool {
        matches!(self.kind, Choice::All | Choice::SystemV)
    }
}

impl Shared {
    fn new(kinds: &[&Kind]) -> io::Result<Shared> {
        Ok(Shared {
            semaphores: kinds.iter().map(|kind| (kind.make)(1)).collect::<io::Result<_>>()?,
            turn: AtomicUsize::new(0),
            take: semaphore::Semaphore::futex(0),
            held: semaphore::Semaphore::futex(0),
            resumed: AtomicU64::new(0),
            released: AtomicU64::new(0),
        })
    }

    fn request(&self, lane: &mut Lane<'_>, cost: Nanos) -> io::Result<()> {
        lane.begin_at(clock::now());
        while lane.running() {
            let mut now = Nanos(0);
            for (turn, semaphore) in self.semaphores.iter().enumerate().rev() {
                self.turn.store(turn, Relaxed);
                self.take.post()?;
                if !lane.wait_for(|| self.held.wait())? {
                    return Ok(());
                }
                let requested = clock::now();
                if !lane.wait_for(|| semaphore.wait())? {
                    return Ok(());
                }
                now = clock::now();
                let resumed = Nanos(self.resumed.load(Relaxed));
                let released = Nanos(self.released.load(Relaxed));
                semaphore.post()?;
                // Else the holder ran although we had not yet asked.
                if resumed > requested {
                    lane.sample(turn, now, (resumed - requested) + (now - released) - cost);
                }
            }
            lane.rest(now);
        }
        Ok(())
    }

    /// The holder.
    fn hold(&self, partner: &Partner<'_>) -> io::Result<()> {
        while partner.wait_for(|| self.take.wait())? {
            let semaphore = &self.semaphores[self.turn.load(Relaxed)];
            if !partner.wait_for(|| semaphore.wait())? {
                break;
            }
            self.held.post()?;
            // The other task has run, and waits for what is held here.
            self.resumed.store(clock::now().0, Relaxed);
            self.released.store(clock::now().0, Relaxed);
            semaphore.post()?;
        }
        Ok(())
    }
}
