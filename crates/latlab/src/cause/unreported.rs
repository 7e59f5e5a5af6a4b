//! A task had the CPU of which the kernel reports less than of others.

use super::{Cause, instead};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};

/// A task had the CPU, and the kernel did not report what came next: that ours was woken, or that
/// the CPU went over to it.
///
/// Recognized by the last report, which names the task. That happens where a task is kept from the
/// tracepoints, as a hypervisor's agent may be; what it did is not known, and neither is how much of
/// the time was the scheduler's.
#[derive(Debug, clap::Args)]
pub(super) struct Unreported;

impl Cause for Unreported {
    const ABOUT: About = About {
        name: "unreported",
        summary: "a task had the CPU of which the kernel does not report all",
    };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let doing = &stretch.doing;
        let alone = doing.interrupt.is_none() && doing.softirq.is_none() && doing.idle.is_none();
        let task = match stretch.phase {
            Phase::Due => doing.task.filter(|task| !task.is_idle() && task.pid != window.task.pid),
            _ => instead(stretch, window).map(|(task, _)| task).filter(|task| !task.is_idle()),
        };
        let task = task.filter(|_| window.unreported && alone)?;
        Some(Who { task: Some(task), ..Who::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;

    #[test]
    fn who_had_the_cpu_last_is_named_where_the_switch_was_not_reported() {
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
        let who = blamed(&unreported, METAL, "unreported");
        assert_eq!(who.task, Some(task(STRESS)));
        assert!(charged(&woken, METAL).iter().all(|(cause, _)| *cause != "unreported"));
    }
}
