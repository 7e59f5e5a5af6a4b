//! A more urgent task had the CPU.

use super::{Cause, culprit};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::Stretch;
use std::cmp::Ordering;

/// A task of higher priority had the CPU while ours could run.
///
/// Recognized by the kernel's own priority of the current task, inheritance included (sched(7)).
/// It may take the CPU from ours between the switch to it and its first instruction, too.
#[derive(Debug, clap::Args)]
pub(super) struct HigherPriority;

impl Cause for HigherPriority {
    const ABOUT: About =
        About { name: "higher-priority", summary: "a task of higher priority had the CPU" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        culprit(Ordering::Less, stretch, window)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn a_more_urgent_task_is_to_blame_by_name() {
        let mut window = scene(&[(15_000, URGENT, timer_upon(PROGRAM)), ENDS]);
        assert!(charged(&window, METAL).contains(&("higher-priority", 9_000)));
        assert_eq!(blamed(&window, METAL, "higher-priority").task, Some(task(URGENT)));
        window.task.prio = 3;
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "higher-priority"));
    }
}
