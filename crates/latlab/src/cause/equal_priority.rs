//! A task that is no less urgent had the CPU.

use super::{Cause, culprit};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::Stretch;
use std::cmp::Ordering;

/// A task of the same priority had the CPU, and ours had to wait for its turn.
///
/// Recognized by the kernel's own priority of the current task. A first-in, first-out task runs
/// until it waits; others change at the ends of their time slices (sched(7)). Ordinary tasks take
/// turns, whatever their niceness, so that all of them count as equal to an ordinary one
/// (Documentation/scheduler/sched-eevdf.rst).
#[derive(Debug, clap::Args)]
pub(super) struct EqualPriority;

impl Cause for EqualPriority {
    const ABOUT: About =
        About { name: "equal-priority", summary: "a task of the same priority had the CPU" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        culprit(Ordering::Equal, stretch, window)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn a_peer_keeps_its_turn_and_ordinary_tasks_are_peers() {
        let event = |pid| [(15_000, pid, timer_upon(PROGRAM)), (21_000, pid, What::InterruptEnd)];
        let window = scene(&event(PEER));
        assert!(charged(&window, METAL).contains(&("equal-priority", 9_000)));
        let mut ordinary = scene(&event(STRESS));
        assert!(!charged(&ordinary, METAL).iter().any(|(cause, _)| *cause == "equal-priority"));
        ordinary.task.prio = 110;
        assert!(charged(&ordinary, METAL).contains(&("equal-priority", 9_000)));
    }
}
