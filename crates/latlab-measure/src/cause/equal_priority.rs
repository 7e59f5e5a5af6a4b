//! A task of the same priority had the CPU.

use super::{Cause, culprit};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::Segment;
use latlab_part::part::{About, Describe};
use std::cmp::Ordering;

/// A task of the same priority had the CPU, and the task had to wait for its turn.
///
/// Recognized by the kernel's own priority of the current task. A SCHED_FIFO task runs until it
/// sleeps; other tasks change at the ends of their time slices (sched(7)). SCHED_OTHER tasks take
/// turns whatever their nice values, so that all of them count as equal
/// (Documentation/scheduler/sched-eevdf.rst).
#[derive(Debug, clap::Args)]
pub(super) struct EqualPriority;

impl Describe for EqualPriority {
    const ABOUT: About =
        About { name: "equal-priority", summary: "a task of the same priority had the CPU" };
}

impl Cause for EqualPriority {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        culprit(Ordering::Equal, segment, window)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn tasks_of_same_priority_are_charged_and_all_sched_other_tasks_are_equal() {
        let event =
            |pid| [(15_000, pid, timer_upon(PROGRAM)), (21_000, pid, EventKind::InterruptEnd)];
        let window = scene(&event(PEER));
        assert!(charged(&window, METAL).contains(&("equal-priority", 9_000)));
        let mut ordinary = scene(&event(STRESS));
        assert!(!charged(&ordinary, METAL).iter().any(|(cause, _)| *cause == "equal-priority"));
        for prio in [110, 139] {
            ordinary.task.prio = prio;
            assert!(charged(&ordinary, METAL).contains(&("equal-priority", 9_000)), "{prio}");
        }
    }
}
