//! Throughput while nobody needs latency.

use super::Mechanism;
use crate::registry::About;
use latlab_core::mechanism::{self, mode};
use latlab_core::time::Nanos;

/// Whatever the other mechanisms would turn is turned only while there is no real-time task.
///
/// Section 3.2 of Seo et al. 2009. Programs' tasks with the policy fifo, rr or deadline count,
/// threads of the kernel do not. With the first one all knobs are given back; one second after the
/// last has gone they are turned again. Without this mechanism they are turned all the time.
#[derive(Debug, clap::Args)]
pub(super) struct ByTasks;

/// How long there must have been no real-time task.
const PATIENCE: Nanos = Nanos::from_secs(1);

impl Mechanism for ByTasks {
    const ABOUT: About =
        About { name: "mode", summary: "the others act only while there is no real-time task" };

    fn pure() -> Box<dyn mechanism::Mechanism> {
        Box::new(mode::ByTasks::after(PATIENCE))
    }
}
