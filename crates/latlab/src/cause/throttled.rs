//! The task could run, and was not allowed to.

use super::{Cause, instead};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use std::cmp::Ordering;

/// The task could run, and the CPU went over or back to a less urgent one all the same: its share
/// was used up.
///
/// Recognized by a switch to a task of lower priority, or to the idle task, while ours stood on the
/// queue of that CPU; or by an interrupt that comes upon the program of such a task meanwhile: the
/// kernel never goes back to one while it means to run another. It is the throttling of real-time
/// tasks, the deadline server of ordinary ones, the budget of a deadline task, or the bandwidth of a
/// control group (Documentation/scheduler/sched-rt-group.rst, sched-deadline.rst, sched-bwc.rst).
#[derive(Debug, clap::Args)]
pub(super) struct Throttled;

impl Cause for Throttled {
    const ABOUT: About =
        About { name: "throttled", summary: "the task's share of the CPU was used up" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let (task, order) = instead(stretch, window)?;
        let passed_over = stretch.phase == Phase::Runnable
            && order == Ordering::Greater
            && (window.was_passed_over(stretch.from) || window.was_left_waiting(stretch.to));
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

    /// Ours is woken while the deadline server of ordinary tasks has the CPU.
    fn left_waiting(upon: Upon) -> Window {
        scene(&[
            (10_200, STRESS, timer_upon(PROGRAM)),
            (20_500, STRESS, What::InterruptEnd),
            (27_000, STRESS, timer_upon(upon)),
            (28_000, STRESS, What::InterruptEnd),
        ])
    }

    #[test]
    fn a_cpu_that_goes_back_to_a_lesser_program_has_throttled_ours() {
        let charges = charged(&left_waiting(PROGRAM), METAL);
        let ends = [("throttled", 6_500), ("interrupt", 1_000), ("dispatch", 3_000)];
        assert_eq!(charges[charges.len() - 3..], ends);
        assert!(
            !charged(&left_waiting(KERNEL), METAL).iter().any(|(cause, _)| *cause == "throttled")
        );
    }

    #[test]
    fn the_interrupt_by_which_another_cpu_wakes_ours_is_no_proof() {
        let call = What::Interrupt { line: Line::Reschedule, upon: Upon::default() };
        let mut window = scene(&[
            (20_100, STRESS, What::Queued { pid: OURS, cpu: 0 }),
            (24_000, STRESS, call),
            (25_000, STRESS, What::InterruptEnd),
        ]);
        window.waker_cpu = 1;
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "throttled"));
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
