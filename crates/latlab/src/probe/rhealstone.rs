//! The Rhealstone benchmark: six components, one after another.

pub(super) mod deadlock;
pub(super) mod interrupt;
pub(super) mod message;
pub(super) mod preemption;
pub(super) mod semaphore;
pub(super) mod switch;

use super::{AnyProbe, Probe};
use crate::failure::{Failure, Result};
use crate::needs::Needs;
use crate::registry::About;
use crate::rig::{Measured, Rig, Scheduling};
use interrupt::Source;
use latlab_core::cpulist::CpuList;
use latlab_core::histogram::Histogram;
use latlab_core::rhealstone::{COMPONENTS, Weights};
use latlab_core::time::Nanos;
use latlab_sys::namespace;
use std::io;

/// Measures the six components of the Rhealstone benchmark, each for the length of the run.
///
/// Kar and Porter 1989, Kar 1990; used by DEC in 1998, and on Linux 2.2 and 2.4 by Heursch,
/// Horstkotte and Rzehak 2001 (tables 1 and 2), who had no `sched_yield` that worked and no mutexes
/// with priority inheritance, and so measured four of the six. Each component is a probe of its
/// own, and says in its help what it measures: rhealstone.switch, .preemption, .interrupt,
/// .semaphore, .deadlock, .message. They run in this order. Their tasks are threads of one process,
/// on one CPU, under fifo, with memory locked; what reading the clock costs is measured first and
/// subtracted; there are distributions beside the means. `--count 7000000` repeats each as often
/// as the paper did.
///
/// With `figure` their means also become one number, rhealstones per second: how often the mean of
/// the six fits into a second. It is an average of averages: it says nothing of the worst case,
/// which is what matters for real time; the weights of an application have no justification but
/// the one that their author gives; and where no handler's time is known, the time until a task
/// runs stands for it, which is longer. Compare the six distributions instead.
///
/// It needs the right to real-time priorities and to an IPC namespace of its own (root). Where
/// System V or POSIX queues are missing, run the components one by one.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Rhealstone {
    /// Also one figure: `mean`, or six weights as 4/2/2/1/0/1, in the order of the components
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    figure: Option<Weights>,
    /// Which interrupt: the test driver's timer or device, this task's own timer, or the best there
    /// is
    #[arg(long, default_value = "auto")]
    source: Source,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

impl Probe for Rhealstone {
    const ABOUT: About = About {
        name: "rhealstone",
        summary: "the six Rhealstone components, and on request their figure",
    };

    fn needs(&self) -> Needs {
        self.components().iter().fold(Needs::default(), |all, one| all.and(one.needs()))
    }

    fn lengths(&self) -> u64 {
        COMPONENTS as u64
    }

    fn check(&self, cpus: &CpuList) -> Result<()> {
        self.components().iter().try_for_each(|component| component.check(cpus))
    }

    fn run(&self, rig: &mut Rig<'_>) -> Result<()> {
        let mut means = [Nanos(0); COMPONENTS];
        for (component, mean) in self.components().iter().zip(&mut means) {
            let before = rig.measured.len();
            component.run(rig)?;
            if rig.is_over() {
                return Ok(());
            }
            *mean = mean_of(&rig.measured[before..]);
        }
        let figure = self.figure.as_ref().and_then(|weights| weights.per_second(means));
        if let Some(figure) = figure {
            rig.figure(Self::ABOUT.name, "Rhealstone figure", figure, "rhealstones/s");
        }
        Ok(())
    }
}

impl Rhealstone {
    fn components(&self) -> [Box<dyn AnyProbe>; COMPONENTS] {
        let scheduling = || self.scheduling.clone();
        [
            Box::new(switch::Switch { scheduling: scheduling() }),
            Box::new(preemption::Preemption { scheduling: scheduling() }),
            Box::new(interrupt::Interrupt { source: self.source, scheduling: scheduling() }),
            Box::new(semaphore::Semaphore::all(scheduling())),
            Box::new(deadlock::Deadlock { scheduling: scheduling() }),
            Box::new(message::Message::all(scheduling())),
        ]
    }
}

/// The mean of the first series of all lanes: System V's, as in the paper, where there are several.
fn mean_of(measured: &[Measured]) -> Nanos {
    let mut all = Histogram::new();
    for one in measured {
        all.add(&one.lane.first().histogram());
    }
    all.mean()
}

/// Refuses where objects of a kind can't be had in an IPC namespace of one's own. `instead` is what
/// can be measured without.
fn check_objects(
    probe: &str,
    instead: &str,
    make: impl FnOnce() -> io::Result<()> + Send,
) -> Result<()> {
    let refused = |why: &str, error: io::Error, remedy: &str| {
        let text = format!("{probe}: {why} ({error}): {remedy}, or measure {instead}");
        Err(Failure::Unsupported(text))
    };
    // A namespace is a thread's, and gone with it. Outside of one nothing is made.
    let tried = std::thread::scope(|scope| {
        let thread = scope.spawn(|| namespace::own_ipc().map(|()| make()));
        thread.join().unwrap_or_else(|_| Ok(Err(io::ErrorKind::Other.into())))
    });
    match tried {
        Err(error) => refused(
            "its objects are to be in an IPC namespace of their own, so that none outlives a \
             killed run, and there is none to be had",
            error,
            "run it as root (CAP_SYS_ADMIN)",
        ),
        Ok(Err(error)) => refused(
            "its objects are not to be had here",
            error,
            "use a kernel with CONFIG_SYSVIPC and CONFIG_POSIX_MQUEUE",
        ),
        Ok(Ok(())) => Ok(()),
    }
}
