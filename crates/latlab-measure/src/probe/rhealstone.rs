//! The Rhealstone benchmark: its six components, one after another.

pub(super) mod deadlock;
pub(super) mod interrupt;
pub(super) mod message;
mod objects;
pub(super) mod preemption;
pub(super) mod semaphore;
pub(super) mod switch;

use super::Probe;
use crate::rig::{ProbeResults, Rig, Scheduling};
use interrupt::InterruptSource;
use latlab_core::cpulist::CpuList;
use latlab_core::histogram::Histogram;
use latlab_core::rhealstone::{COMPONENTS, Weights};
use latlab_core::time::Nanos;
use latlab_part::failure::Result;
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};

/// Measures the six components of the Rhealstone benchmark, from task switch time to message
/// passing time, each for the length of the run.
///
/// Rhealstone was defined by Kar and Porter 1989 and Kar 1990, used by DEC in 1998, and measured on
/// Linux 2.2 and 2.4 by Heursch, Horstkotte and Rzehak 2001 (tables 1 and 2). They lacked a working
/// `sched_yield` and mutexes with priority inheritance, and so measured four of the six. Each
/// component is a probe of its own, whose help says which latency it measures: rhealstone.switch,
/// .preemption, .interrupt, .semaphore, .deadlock, .message. They run in this order. Their tasks
/// are threads of one process, on one CPU, under fifo, with memory locked. The cost of reading the
/// clock is measured first and subtracted; distributions are recorded in addition to the means.
/// `--count 7000000` repeats each component as often as the paper did.
///
/// With `figure` the means are also combined into one number, rhealstones per second: how often the
/// mean of the six fits into a second. It is an average of averages and says nothing about the
/// worst case, which matters for real time. Weights have no justification but the one that their
/// author gives. If the time of the interrupt handler is not known, the time until a task runs
/// takes its place, which is longer. Compare the six distributions instead.
///
/// It needs the right to use real-time priorities and to create an IPC namespace (root). On kernels
/// without System V or POSIX queues, run the components one by one.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Rhealstone {
    /// Combine the means into one figure: `mean`, or six weights as 4/2/2/1/0/1, in the order of
    /// the components
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    figure: Option<Weights>,
    /// Source of the interrupt: the test driver's timer or device, the task's own timer, or the
    /// best available one
    #[arg(long, default_value = "auto")]
    source: InterruptSource,
    #[command(flatten)]
    #[serde(flatten)]
    scheduling: Scheduling,
}

impl Describe for Rhealstone {
    const ABOUT: About = About {
        name: "rhealstone",
        summary: "the six Rhealstone components, and optionally the Rhealstone figure",
    };
}

impl Probe for Rhealstone {
    fn needs(&self) -> Needs {
        self.components().iter().fold(Needs::default(), |all, one| all.and(one.needs()))
    }

    fn length_factor(&self) -> u64 {
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
            rig.add_figure(Self::ABOUT.name, "Rhealstone figure", figure, "rhealstones/s");
        }
        Ok(())
    }
}

impl Rhealstone {
    fn components(&self) -> [Box<dyn Probe>; COMPONENTS] {
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

/// Returns the mean of the first series of all CPUs. Of several kinds the first is System V, as in
/// the paper.
fn mean_of(measured: &[ProbeResults]) -> Nanos {
    let mut all = Histogram::new();
    for one in measured {
        all.add(&one.recording.first().histogram());
    }
    all.mean()
}
