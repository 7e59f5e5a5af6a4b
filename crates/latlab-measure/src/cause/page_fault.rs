//! The task had a page fault.

use super::Cause;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{EventKind, Window};
use latlab_part::part::{About, Describe};

/// The task had a page fault after the switch to it.
///
/// Recognized by `exceptions:page_fault_user` (on arm64 by the software event of page faults) of the
/// task between the switch to it and its running. Everything from there on is charged to the fault, a
/// wait for a disk included, but not the time of tasks that preempt it. A task that locks its memory
/// has no page faults (mlockall(2)).
#[derive(Debug, clap::Args)]
pub(super) struct PageFault;

impl Describe for PageFault {
    const ABOUT: About = About { name: "page-fault", summary: "the task had a page fault" };
}

impl Cause for PageFault {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let mut since = window
            .events
            .iter()
            .filter(|event| event.at >= window.switched && event.at <= segment.from);
        let faulted = since.any(|event| {
            event.task.pid == window.task.pid && matches!(event.kind, EventKind::PageFault { .. })
        });
        let faulting = segment.phase == Phase::Running && faulted && !window.is_preempted(segment);
        faulting.then_some(Culprit { task: Some(window.task), ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn time_after_page_fault_is_charged_to_it() {
        let mut window = scene(&[
            (30_400, OURS, EventKind::PageFault { address: 4_096 }),
            (31_000, OURS, EventKind::Switch { next: task(URGENT), preempted: false }),
            (32_000, URGENT, EventKind::Switch { next: task(OURS), preempted: false }),
        ]);
        window.ran = Nanos(33_000);
        let charges = charged(&window, METAL);
        assert_eq!(charges[charges.len() - 2..], [("dispatch", 400), ("page-fault", 2_600)]);
    }

    #[test]
    fn preemption_during_page_fault_is_not_charged_to_it() {
        let mut window = scene(&[
            (30_400, OURS, EventKind::PageFault { address: 4_096 }),
            (31_000, OURS, EventKind::Switch { next: task(URGENT), preempted: true }),
            (34_000, URGENT, EventKind::Switch { next: task(OURS), preempted: false }),
        ]);
        window.ran = Nanos(35_000);
        let charges = charged(&window, METAL);
        let ends = [("page-fault", 600), ("higher-priority", 3_000), ("page-fault", 1_000)];
        assert_eq!(charges[charges.len() - 3..], ends);
    }
}
