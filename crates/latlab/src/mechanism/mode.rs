//! Throughput while nobody needs latency.

use super::Mechanism;
use crate::registry::About;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::{self, mode};
use latlab_core::time::Nanos;

/// What serves ordinary tasks alone is done only while there is no real-time task.
///
/// Section 3.2 of Seo et al. 2009. Programs' tasks with the policy fifo, rr or deadline count,
/// threads of the kernel do not. Beside transparent or selective, interrupt threads are ordinary
/// tasks while there is no real-time task: interrupts but the timer's can wait. Beside neither, the
/// knobs of the others are given back with the first real-time task, for it is not known whom it
/// waits for. One second after the last has gone all is as before. Without this mechanism the knobs
/// are turned all the time. It has one knob of its own, which serves real-time tasks and is turned
/// while there are some: `pagelist_high_fraction` goes to 1000000 (5.14 and later), so that a task
/// that ends gives back at most some hundred pages at once, not a thousand, while it holds a lock
/// for which real-time tasks may wait. Ordinary tasks then take and give back pages in more steps.
#[derive(Debug, clap::Args)]
pub(super) struct ByTasks;

/// How long there must have been no real-time task.
const PATIENCE: Nanos = Nanos::from_secs(1);

impl Mechanism for ByTasks {
    const ABOUT: About = About {
        name: "mode",
        summary: "what serves ordinary tasks alone is done without real-time tasks",
    };

    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(mode::ByTasks::after(PATIENCE))
    }
}
