//! Rhealstone component 4: a semaphore passes from a low-priority task to a high-priority one.

use super::objects::{self, Object, ObjectKind};
use crate::probe::Probe;
use crate::rig::{Cost, Pacing, Rig, Sampler, Scheduling, SecondTask, Span};
use latlab_core::cpulist::CpuList;
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::{clock, semaphore};
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Measures the time from requesting a semaphore that a lower-priority task holds until it is
/// obtained.
///
/// The time that the holder runs before it releases the semaphore is left out. This is the
/// semaphore shuffle time of Rhealstone (Kar and Porter 1989), as Heursch et al. 2001 define it
/// (table 2): two switches, a wait and a release. System V semaphores, as in the paper, POSIX
/// semaphores and bare futexes are measured alternately in one loop. Two readings of the clock are
/// subtracted; the cost of taking and releasing a semaphore for which no task waits is a figure.
/// System V semaphores are created in an IPC namespace of their own, which needs root; kind=posix
/// and kind=futex do not.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(crate) struct Semaphore {
    /// Kind of semaphores
    #[arg(long, default_value = "all", value_parser = objects::kind_parser(&SEMAPHORES))]
    kind: ObjectKind,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

/// All kinds, the paper's first.
static SEMAPHORES: [Object<semaphore::Semaphore>; 3] = [
    Object {
        kind: ObjectKind::SystemV,
        span: ("held System V semaphore requested", "System V semaphore obtained"),
        make: || semaphore::Semaphore::system_v(1),
        uncontended: "System V semaphore, nobody waits",
        in_namespace: true,
    },
    Object {
        kind: ObjectKind::Posix,
        span: ("held POSIX semaphore requested", "POSIX semaphore obtained"),
        make: || semaphore::Semaphore::posix(1),
        uncontended: "POSIX semaphore, nobody waits",
        in_namespace: false,
    },
    Object {
        kind: ObjectKind::Futex,
        span: ("held futex requested", "futex obtained"),
        make: || Ok(semaphore::Semaphore::futex(1)),
        uncontended: "futex, nobody waits",
        in_namespace: false,
    },
];

/// State shared by the two tasks.
struct Shared {
    semaphores: Vec<semaphore::Semaphore>,
    /// Index of the semaphore that is measured next.
    turn: AtomicUsize,
    /// Tells the holder to take it, and that it is taken.
    take: semaphore::Semaphore,
    held: semaphore::Semaphore,
    /// Two times of the holder: when it resumed while the other task waited, and when it released
    /// the semaphore.
    resumed: AtomicU64,
    released: AtomicU64,
}

impl Describe for Semaphore {
    const ABOUT: About = About {
        name: "rhealstone.semaphore",
        summary: "a semaphore passes from its holder to a higher-priority task",
    };
}

impl Probe for Semaphore {
    fn check(&self, _: &CpuList) -> Result<()> {
        self.scheduling.check_priorities(Self::ABOUT.name, 1)?;
        objects::check(Self::ABOUT.name, "kind=posix or kind=futex", &self.selected()?)
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
                for (semaphore, cost) in shared.semaphores.iter().zip(&uncontended) {
                    cost.measure(|| semaphore.wait().and_then(|_| semaphore.post()))?;
                }
                let cost = clock.measure_clock_read();
                sampler.with_second_task(
                    self.scheduling.policy_with_offset(-1),
                    |task| shared.hold(task),
                    |sampler| shared.request(sampler, Nanos(2 * cost.0)),
                )
            });
        uncontended.iter().chain([&clock]).for_each(|cost| rig.add_cost(name, cost));
        done
    }
}

impl Semaphore {
    /// Returns the component with all kinds.
    pub(super) fn all(scheduling: Scheduling) -> Semaphore {
        Semaphore { kind: ObjectKind::All, scheduling }
    }

    fn selected(&self) -> Result<Vec<&'static Object<semaphore::Semaphore>>> {
        objects::select(Self::ABOUT.name, &SEMAPHORES, self.kind)
    }
}

impl Shared {
    fn new(objects: &[&Object<semaphore::Semaphore>]) -> io::Result<Shared> {
        Ok(Shared {
            semaphores: objects.iter().map(|object| (object.make)()).collect::<io::Result<_>>()?,
            turn: AtomicUsize::new(0),
            take: semaphore::Semaphore::futex(0),
            held: semaphore::Semaphore::futex(0),
            resumed: AtomicU64::new(0),
            released: AtomicU64::new(0),
        })
    }

    fn request(&self, sampler: &mut Sampler<'_>, cost: Nanos) -> io::Result<()> {
        sampler.start_at(clock::now());
        while sampler.running() {
            let mut now = Nanos(0);
            for (turn, semaphore) in self.semaphores.iter().enumerate().rev() {
                self.turn.store(turn, Relaxed);
                self.take.post()?;
                if !sampler.wait_for(|| self.held.wait())? {
                    return Ok(());
                }
                let requested = clock::now();
                if !sampler.wait_for(|| semaphore.wait())? {
                    return Ok(());
                }
                now = clock::now();
                let resumed = Nanos(self.resumed.load(Relaxed));
                let released = Nanos(self.released.load(Relaxed));
                semaphore.post()?;
                // Otherwise the holder resumed before this task requested the semaphore.
                if resumed > requested {
                    sampler.record(turn, now, (resumed - requested) + (now - released) - cost);
                }
            }
            sampler.advance_and_pause(now);
        }
        Ok(())
    }

    /// Body of the holder.
    fn hold(&self, task: &SecondTask<'_>) -> io::Result<()> {
        while task.wait_for(|| self.take.wait())? {
            let semaphore = &self.semaphores[self.turn.load(Relaxed)];
            if !task.wait_for(|| semaphore.wait())? {
                break;
            }
            self.held.post()?;
            // The measuring task has run and waits for this semaphore.
            self.resumed.store(clock::now().0, Relaxed);
            self.released.store(clock::now().0, Relaxed);
            semaphore.post()?;
        }
        Ok(())
    }
}
