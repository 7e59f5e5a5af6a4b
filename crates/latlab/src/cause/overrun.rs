//! The task itself was not ready.

use super::Cause;
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};

/// The task had the CPU and was still at work when it was due again, so that it did not sleep.
///
/// Recognized by a task that has had the CPU since before it was due. What came in between is
/// charged by itself; what is left is the task's own work, or that the machine stood still
/// meanwhile. Scheduling theory calls it an overrun (Liu and Layland 1973).
#[derive(Debug, clap::Args)]
pub(super) struct Overrun;

impl Cause for Overrun {
    const ABOUT: About =
        About { name: "overrun", summary: "the task was still at work when it was due again" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let ours = stretch.doing.task.is_some_and(|task| task.pid == window.task.pid);
        let claimed = stretch.phase == Phase::Running && window.switched <= window.due && ours;
        claimed.then_some(Who { task: Some(window.task), ..Who::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;

    #[test]
    fn who_has_the_cpu_since_before_it_was_due_is_not_dispatched() {
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
