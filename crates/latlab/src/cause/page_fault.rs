//! The task touched memory that was not there.

use super::Cause;
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{Task, What, Window};

/// The task had the CPU already, and touched memory that was not there.
///
/// Recognized by `exceptions:page_fault_user` of the task between the switch to it and its
/// running; all from there on is the fault's, waiting for a disk too, but not what others do that
/// take the CPU from it. Whoever locks its memory has none (mlockall(2)).
#[derive(Debug, clap::Args)]
pub(super) struct PageFault;

impl Cause for PageFault {
    const ABOUT: About =
        About { name: "page-fault", summary: "the task touched memory that was not there" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let ours = |task: Task| task.pid == window.task.pid;
        let since: Vec<What> = { window.events.iter() }
            .filter(|event| event.at >= window.switched && event.at <= stretch.from)
            .filter(|event| ours(event.task))
            .map(|event| event.what)
            .collect();
        let faulted = since.iter().any(|what| matches!(what, What::PageFault { .. }));
        let last_left = since.iter().rfind(|what| matches!(what, What::Switch { .. }));
        let preempted = !stretch.doing.task.is_some_and(ours)
            && matches!(last_left, Some(What::Switch { preempted: true, .. }));
        let faulting = stretch.phase == Phase::Running && faulted && !preempted;
        faulting.then_some(Who { task: Some(window.task), ..Who::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn what_follows_a_fault_is_the_faults() {
        let mut window = scene(&[
            (30_400, OURS, What::PageFault { address: 4_096 }),
            (31_000, OURS, What::Switch { next: task(URGENT), preempted: false }),
            (32_000, URGENT, What::Switch { next: task(OURS), preempted: false }),
        ]);
        window.ran = Nanos(33_000);
        let charges = charged(&window, METAL);
        assert_eq!(charges[charges.len() - 2..], [("dispatch", 400), ("page-fault", 2_600)]);
    }

    #[test]
    fn whoever_takes_the_cpu_meanwhile_is_not_the_fault() {
        let mut window = scene(&[
            (30_400, OURS, What::PageFault { address: 4_096 }),
            (31_000, OURS, What::Switch { next: task(URGENT), preempted: true }),
            (34_000, URGENT, What::Switch { next: task(OURS), preempted: false }),
        ]);
        window.ran = Nanos(35_000);
        let charges = charged(&window, METAL);
        let ends = [("page-fault", 600), ("higher-priority", 3_000), ("page-fault", 1_000)];
        assert_eq!(charges[charges.len() - 3..], ends);
    }
}
