//! No SCHED_OTHER task preempts another.

use super::Mechanism;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::{self as mechanism, suppress};
use latlab_part::part::{About, Describe};

/// Keeps SCHED_OTHER tasks from preempting each other within a slice; real-time tasks still preempt
/// at once.
///
/// Section 3.1 of Seo et al. 2009. It raises the throughput of SCHED_OTHER tasks by knobs in debugfs:
/// `preempt` is set from full to lazy, if the kernel has lazy preemption (mainline from 6.13, Debian's
/// 6.12-rt), and `wakeup_preemption` from 1 to 0. A third, `base_slice`, the time that a task runs
/// before the tick switches to another (6.6 and later), is set from 0.7 ms on one CPU to 3 ms, about
/// the kernel's own value (2.8 ms) from eight CPUs on. A knob that has such a value already is left
/// alone. Real-time tasks are not affected. A SCHED_OTHER task that is woken may wait for a slice, a
/// few milliseconds, and so may all tasks that wait for it; it keeps its share of the CPU, as it runs
/// before tasks that have computed meanwhile.
#[derive(Debug, clap::Args)]
pub(super) struct Suppress;

impl Describe for Suppress {
    const ABOUT: About = About {
        name: "suppress",
        summary: "SCHED_OTHER tasks don't preempt each other within a slice",
    };
}

impl Mechanism for Suppress {
    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(suppress::Suppress)
    }
}
