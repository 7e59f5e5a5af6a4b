//! The task was being migrated to another CPU.

use super::{Cause, is_idle};
use crate::part::{About, Describe};
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::evidence::AT_ONCE;
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{Line, Window};

/// The task was runnable and was being migrated to the CPU on which it then ran.
///
/// Recognized by `sched:sched_migrate_task` and `sched:sched_wakeup`: until the task is on the run
/// queue of its new CPU; and, if that CPU is not idle, until the reschedule interrupt arrives by
/// which the old CPU asks the new one to schedule (Documentation/scheduler/sched-domains.rst). If
/// that takes longer than ten microseconds, something delayed it, and no event says what.
#[derive(Debug, clap::Args)]
pub(super) struct Migration;

impl Describe for Migration {
    const ABOUT: About =
        About { name: "migration", summary: "the task was being migrated to another CPU" };
}

impl Cause for Migration {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        if segment.phase != Phase::Runnable || segment.activity.interrupt.is_some() {
            return None;
        }
        let elsewhere = window.waker_cpu != window.cpu || window.was_moved();
        if elsewhere && window.queued().is_some_and(|queued| segment.to <= queued) {
            return Some(Culprit::default());
        }
        let next = segment.next_interrupt(window).filter(|_| elsewhere && !is_idle(segment))?;
        let asked = next.line == Line::Reschedule
            && next.late < AT_ONCE
            && segment.activity.softirq.is_none();
        asked.then_some(Culprit { line: Some(Line::Reschedule), ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn migration_lasts_until_task_is_queued_and_reschedule_ipi_arrives() {
        let mut window = scene(&[
            (1_000, STRESS, EventKind::SoftirqEnd),
            (22_000, STRESS, EventKind::Queued { pid: OURS, cpu: 0 }),
            (24_000, STRESS, CALL),
            (24_500, STRESS, EventKind::InterruptEnd),
        ]);
        (window.waker_cpu, window.due, window.expiry) = (1, window.waking, window.waking);
        let charges = charged(&window, METAL);
        assert_eq!(charges[..3], [("migration", 2_000), ("migration", 2_000), ("interrupt", 500)]);
    }

    #[test]
    fn reschedule_ipi_delayed_by_ten_microseconds_is_unexplained() {
        let called = |waking| {
            let mut window =
                scene(&[(1_000, STRESS, EventKind::SoftirqEnd), (25_000, STRESS, CALL)]);
            (window.waker_cpu, window.waking) = (1, Nanos(waking));
            (window.due, window.expiry) = (window.waking, window.waking);
            window
        };
        assert_eq!(charged(&called(15_001), METAL)[0], ("migration", 9_999));
        let explained = explain(&called(15_000), &METAL);
        assert_eq!(
            (explained.charges[0].cause, explained.unexplained),
            ("interrupt", Nanos(10_000))
        );
    }

    #[test]
    fn migration_lasts_until_task_is_pulled_to_its_cpu() {
        let mut window = scene(&[
            (20_500, STRESS, EventKind::Queued { pid: OURS, cpu: 1 }),
            (27_000, STRESS, EventKind::Migrated { pid: OURS, cpu: 0 }),
        ]);
        (window.due, window.expiry) = (window.waking, window.waking);
        assert_eq!(charged(&window, METAL)[0], ("migration", 7_000));
        window.events.remove(1);
        assert_ne!(charged(&window, METAL)[0].0, "migration");
    }
}
