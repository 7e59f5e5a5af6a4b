//! Throughput mode while there is no real-time task.

use super::Mechanism;
use latlab_core::time::Nanos;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{self as mechanism, mode};
use latlab_part::part::{About, Describe};

/// Serves throughput while there is no real-time task, and latency while there are some.
///
/// Section 3.2 of Seo et al. 2009. Tasks of programs with SCHED_FIFO, SCHED_RR or SCHED_DEADLINE
/// count, kernel threads do not. Together with transparent or selective, IRQ threads are
/// SCHED_OTHER while there is no real-time task: all interrupts but the timer's can wait then.
/// Without these two, the knobs of other mechanisms are restored with the first real-time task, as
/// it is not known which threads it needs. They are set again one second after the last real-time
/// task has gone. Without this mechanism knobs are set all the time. It has one knob of its own,
/// for the latency of real-time tasks, which is set while there are some: `pagelist_high_fraction`
/// is set to 1000000 (5.14 and later), so that a task that exits frees at most some hundred pages
/// at a time, instead of a thousand, while it holds a lock that real-time tasks may need.
/// SCHED_OTHER tasks then allocate and free pages in more steps.
#[derive(Debug, clap::Args)]
pub(super) struct ByTasks;

/// Time without a real-time task before throughput mode.
const PATIENCE: Nanos = Nanos::from_secs(1);

impl Describe for ByTasks {
    const ABOUT: About = About {
        name: "mode",
        summary: "IRQ threads SCHED_OTHER, or throughput knobs, without real-time tasks",
    };
}

impl Mechanism for ByTasks {
    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(mode::ByTasks::after(PATIENCE))
    }
}
