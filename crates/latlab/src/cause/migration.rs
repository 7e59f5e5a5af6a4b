//! The task was on its way to another CPU.

use super::{Cause, is_idle};
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{Line, Window};
use latlab_core::time::Nanos;

/// The task could run, and was on its way to the CPU on which it then did.
///
/// Recognized by `sched:sched_migrate_task` and `sched:sched_wakeup`: until the task stands on the
/// queue of its new CPU; and, where that is not idle, until the interrupt arrives by which the old
/// one asks the new one to look whom to run (Documentation/scheduler/sched-domains.rst). If that
/// takes longer than ten microseconds, something was in its way, and nothing tells what.
#[derive(Debug, clap::Args)]
pub(super) struct Migration;

/// The longest that the call of another CPU takes with nothing in its way, in a guest too.
const CALL: Nanos = Nanos::from_micros(10);

impl Cause for Migration {
    const ABOUT: About =
        About { name: "migration", summary: "the task was on its way to another CPU" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        if stretch.phase != Phase::Runnable || stretch.doing.interrupt.is_some() {
            return None;
        }
        let elsewhere = window.waker_cpu != window.cpu || window.was_moved();
        if elsewhere && window.queued().is_some_and(|queued| stretch.to <= queued) {
            return Some(Who::default());
        }
        let next = stretch.next_interrupt(window).filter(|_| elsewhere && !is_idle(stretch))?;
        let asked =
            next.line == Line::Reschedule && next.late < CALL && stretch.doing.softirq.is_none();
        asked.then_some(Who { line: Some(Line::Reschedule), ..Who::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    const CALL: What =
        What::Interrupt { line: Line::Reschedule, upon: Upon { ip: 0, user: false } };

    #[test]
    fn a_task_moves_until_it_is_queued_and_the_other_cpu_told() {
        let mut window = scene(&[
            (1_000, STRESS, What::SoftirqEnd),
            (22_000, STRESS, What::Queued { pid: OURS, cpu: 0 }),
            (24_000, STRESS, CALL),
            (24_500, STRESS, What::InterruptEnd),
        ]);
        (window.waker_cpu, window.due, window.expiry) = (1, window.waking, window.waking);
        let charges = charged(&window, METAL);
        assert_eq!(charges[..3], [("migration", 2_000), ("migration", 2_000), ("interrupt", 500)]);
    }

    #[test]
    fn what_keeps_the_call_off_for_long_is_not_known() {
        let called = |waking| {
            let mut window = scene(&[(1_000, STRESS, What::SoftirqEnd), (25_000, STRESS, CALL)]);
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
    fn one_that_was_pulled_over_waited_elsewhere_until_then() {
        let mut window = scene(&[
            (20_500, STRESS, What::Queued { pid: OURS, cpu: 1 }),
            (27_000, STRESS, What::Migrated { pid: OURS, cpu: 0 }),
        ]);
        (window.due, window.expiry) = (window.waking, window.waking);
        assert_eq!(charged(&window, METAL)[0], ("migration", 7_000));
        window.events.remove(1);
        assert_ne!(charged(&window, METAL)[0].0, "migration");
    }
}
