//! A `sched_switch` event is missing.

use super::{Cause, instead};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_part::part::{About, Describe};

/// The kernel did not report a context switch: after the last known task on the CPU, neither the
/// wake-up of the late task nor the switch to it was recorded.
///
/// Recognized by the last event, which names the task that had the CPU. That happens where a task
/// is hidden from the tracepoints, as the agent of a hypervisor may be. What it did, and how much
/// of the time the scheduler took, is unknown.
#[derive(Debug, clap::Args)]
pub(super) struct Unreported;

impl Describe for Unreported {
    const ABOUT: About = About {
        name: "unreported",
        summary: "missing sched_switch event: last known task on the CPU is named",
    };
}

impl Cause for Unreported {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let activity = &segment.activity;
        let alone = activity.interrupt.is_none() && activity.softirq.is_none();
        let task = match segment.phase {
            Phase::Due => {
                activity.task.filter(|task| !task.is_idle() && task.pid != window.task.pid)
            }
            _ => instead(segment, window).map(|(task, _)| task).filter(|task| !task.is_idle()),
        };
        let task = task.filter(|_| window.unreported && alone)?;
        Some(Culprit { task: Some(task), ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;

    #[test]
    fn last_known_task_is_culprit_if_switch_was_not_reported() {
        let seen = [(15_000, STRESS, timer_upon(PROGRAM)), ENDS_OF_STRESS];
        let woken = scene(&seen);
        let events = woken.events.iter().filter(|event| event.at < woken.switched);
        let unreported = Window {
            events: events.copied().collect(),
            switched: woken.ran,
            unreported: true,
            ..woken.clone()
        };
        let charges = charged(&unreported, METAL);
        assert_eq!(charges.last(), Some(&("unreported", 10_000)), "{charges:?}");
        let culprit = blamed(&unreported, METAL, "unreported");
        assert_eq!(culprit.task, Some(task(STRESS)));
        assert!(charged(&woken, METAL).iter().all(|(cause, _)| *cause != "unreported"));
    }
}
