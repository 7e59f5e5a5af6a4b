//! The task itself was still running.

use super::Cause;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_part::part::{About, Describe};

/// The task was still running when it was due again, so it did not sleep.
///
/// Recognized by a task that has had the CPU since before it was due. Other causes in between are
/// charged by themselves. What is left is the task's own work, or time in which the machine stood
/// still. Scheduling theory calls it an overrun (Liu and Layland 1973).
#[derive(Debug, clap::Args)]
pub(super) struct Overrun;

impl Describe for Overrun {
    const ABOUT: About =
        About { name: "overrun", summary: "the task was still running when it was due again" };
}

impl Cause for Overrun {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let is_own = segment.activity.task.is_some_and(|task| task.pid == window.task.pid);
        let claimed = segment.phase == Phase::Running && window.switched <= window.due && is_own;
        claimed.then_some(Culprit { task: Some(window.task), ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;

    #[test]
    fn task_with_cpu_since_before_due_time_is_charged_with_overrun() {
        let woken = scene(&[(15_000, STRESS, timer_upon(KERNEL)), ENDS_OF_STRESS]);
        let again = Window {
            due: Nanos(30_400),
            expiry: Nanos(30_400),
            waking: Nanos(30_400),
            ..woken.clone()
        };
        assert_eq!(charged(&again, METAL), [("overrun", 600)]);
        assert!(charged(&woken, METAL).iter().all(|(cause, _)| *cause != "overrun"));
    }
}
