//! The task touched memory that was not there.

use super::Cause;
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{What, Window};

/// The task had the CPU already, and touched memory that was not there.
///
/// Recognized by `exceptions:page_fault_user` of the task between the switch to it and its
/// running; all from there on is the fault's, waiting for a disk too. Whoever locks its memory has
/// none (mlockall(2)).
#[derive(Debug, clap::Args)]
pub(super) struct PageFault;

impl Cause for PageFault {
    const ABOUT: About =
        About { name: "page-fault", summary: "the task touched memory that was not there" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let ours = |task: latlab_core::explain::Task| task.pid == window.task.pid;
        let mut since = window.events.iter().filter(|event| {
            event.at >= window.switched && event.at <= stretch.from && ours(event.task)
        });
        let faulted = since.any(|event| matches!(event.what, What::PageFault { .. }));
        let faulting = stretch.phase == Phase::Running && faulted;
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
}
