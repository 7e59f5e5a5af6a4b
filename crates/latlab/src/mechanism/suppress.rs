//! No ordinary task preempts another.

use super::Mechanism;
use crate::registry::About;
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::{self, suppress};

/// An ordinary task does not preempt another before that one's slice ends; a real-time task still
/// preempts at once.
///
/// Section 3.1 of Seo et al. 2009. Where the kernel takes schedulers (`sched_ext`, from 6.12, with
/// `CONFIG_SCHED_CLASS_EXT`) it gets one that has this rule. Elsewhere two knobs in debugfs come near
/// to it: `preempt` goes from full to lazy, where the kernel has lazy preemption (mainline from
/// 6.13, Debian's 6.12-rt), and `wakeup_preemption` from 1 to 0. Two more have those who wait take
/// turns less often (6.6 and later): `place_lag` goes from 1 to 0, so that tasks that are woken run in
/// that order, not in that of the shares they had before they slept, find more to do, and sleep less
/// often (`hackbench` a third as often); `base_slice`, how long a task runs before the tick
/// gives way to another, from 0.7 ms on one CPU to 3 ms, about what the kernel has itself (2.8 ms)
/// from eight CPUs on. A knob that spares ordinary tasks already stays as it is. What runs with a real-time policy is served as before; an ordinary task
/// that is woken may wait for a slice, a few milliseconds, and with it whoever waits for that task.
#[derive(Debug, clap::Args)]
pub(super) struct Suppress;

impl Mechanism for Suppress {
    const ABOUT: About = About {
        name: "suppress",
        summary: "ordinary tasks don't preempt each other within a slice",
    };

    fn pure(_: &Configuration) -> Box<dyn mechanism::Mechanism> {
        Box::new(suppress::Suppress)
    }
}
