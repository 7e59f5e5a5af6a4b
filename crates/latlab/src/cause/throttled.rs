//! The task could run, and was not allowed to.

use super::{Cause, instead};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use std::cmp::Ordering;

/// The task could run, and the CPU went over to a less urgent one all the same: its share was
/// used up.
///
/// Recognized by a switch to a task of lower priority, or to the idle task, while ours stood on the
/// queue of that CPU. It is the throttling of real-time tasks, the deadline server of ordinary
/// ones, the budget of a deadline task, or the bandwidth of a control group
/// (Documentation/scheduler/sched-rt-group.rst, sched-deadline.rst, sched-bwc.rst).
#[derive(Debug, clap::Args)]
pub(super) struct Throttled;

impl Cause for Throttled {
    const ABOUT: About =
        About { name: "throttled", summary: "the task's share of the CPU was used up" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let (task, order) = instead(stretch, window)?;
        let passed_over = stretch.phase == Phase::Runnable
            && order == Ordering::Greater
            && window.was_passed_over(stretch.from);
        passed_over.then_some(Who { task: Some(task), ..Who::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    fn passed_over(next: u32) -> Window {
        scene(&[
            (20_200, STRESS, What::Queued { pid: OURS, cpu: 0 }),
            (21_000, URGENT, What::Switch { next: task(next), preempted: true }),
        ])
    }

    #[test]
    fn a_cpu_that_goes_over_to_a_lesser_task_has_throttled_ours() {
        for next in [STRESS, IDLE] {
            let window = passed_over(next);
            assert!(charged(&window, METAL).contains(&("throttled", 9_000)));
            assert_eq!(blamed(&window, METAL, "throttled").task, Some(task(next)));
        }
    }

    #[test]
    fn a_switch_before_ours_was_queued_or_to_an_urgent_task_is_none() {
        let mut before = passed_over(STRESS);
        before.events[0].at = Nanos(21_500);
        for window in [before, passed_over(URGENT)] {
            assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "throttled"));
        }
    }
}
