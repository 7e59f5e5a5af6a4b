//! IRQ threads that wake real-time tasks get a real-time priority.

use super::Mechanism;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{self as mechanism, transparent};
use latlab_part::part::{About, Describe};

/// Gives an IRQ or softirq thread that has woken a real-time task a real-time priority while that
/// task exists.
///
/// Section 3.4 of Seo et al. 2009. A BPF program watches which threads wake real-time tasks: irq/…
/// threads, with PREEMPT_RT also ksoftirqd/… and ktimers/…, and the IRQ thread on whose
/// behalf these wake a task. `sched_setattr(2)` gives such a thread SCHED_FIFO 50, the kernel's
/// default for interrupts, but not more than the priority of the task, and never less than its
/// original priority. The original priority is restored when the last such task has ended or has
/// become SCHED_OTHER. The first wake-up of a task may be late, as the thread that wakes it is not
/// known yet.
#[derive(Debug, clap::Args)]
pub(super) struct Transparent;

impl Describe for Transparent {
    const ABOUT: About = About {
        name: "transparent",
        summary: "IRQ threads that wake real-time tasks get a real-time priority",
    };
}

impl Mechanism for Transparent {
    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(transparent::Transparent::default())
    }
}
