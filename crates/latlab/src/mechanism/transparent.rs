//! Interrupt threads that wake real-time tasks go before ordinary tasks.

use super::Mechanism;
use crate::registry::About;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::{self, transparent};

/// A thread that handles interrupts, and that was seen to wake a real-time task, gets a real-time
/// priority while that task is there.
///
/// Section 3.4 of Seo et al. 2009, by means of a BPF program that looks at who wakes real-time
/// tasks, and of `sched_setattr(2)`: irq/… threads, and with PREEMPT_RT ksoftirqd/… and ktimers/…, and
/// the interrupt thread on whose behalf those wake somebody. Such a thread gets FIFO 50, the
/// kernel's own choice for interrupts, but not more than the task has, and never less than it was
/// found with. It has its own priority again when the last such task has ended or become an ordinary
/// one. The first wake-up of a task may be late: nobody knows then who wakes it.
#[derive(Debug, clap::Args)]
pub(super) struct Transparent;

impl Mechanism for Transparent {
    const ABOUT: About = About {
        name: "transparent",
        summary: "interrupt threads that wake real-time tasks go before ordinary tasks",
    };

    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(transparent::Transparent::default())
    }
}
