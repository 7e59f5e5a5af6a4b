//! A task of higher priority had the CPU.

use super::{Cause, culprit};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::Segment;
use latlab_part::part::{About, Describe};
use std::cmp::Ordering;

/// A task of higher priority had the CPU while the task was runnable.
///
/// Recognized by the kernel's own priority of the current task, including priority inheritance
/// (sched(7)). Such a task can also preempt the task between the switch to it and its first
/// instruction.
#[derive(Debug, clap::Args)]
pub(super) struct HigherPriority;

impl Describe for HigherPriority {
    const ABOUT: About =
        About { name: "higher-priority", summary: "a task of higher priority had the CPU" };
}

impl Cause for HigherPriority {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        culprit(Ordering::Less, segment, window)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn task_of_higher_priority_is_the_culprit() {
        let mut window = scene(&[(15_000, URGENT, timer_upon(PROGRAM)), ENDS]);
        assert!(charged(&window, METAL).contains(&("higher-priority", 9_000)));
        assert_eq!(blamed(&window, METAL, "higher-priority").task, Some(task(URGENT)));
        window.task.prio = 3;
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "higher-priority"));
    }
}
