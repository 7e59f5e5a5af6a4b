//! The task was being migrated to another CPU.

use super::{Cause, is_idle};
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::evidence::AT_ONCE;
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{Line, Window};
use latlab_part::part::{About, Describe};

/// The task was runnable and was being migrated to another CPU, which takes microseconds.
///
/// Recognized by `sched:sched_migrate_task` and `sched:sched_wakeup`: until the woken task is on the
/// run queue of another CPU than that which woke it; and there, or where it was moved later, until
/// the reschedule interrupt arrives by which the old CPU asks the new one to schedule, if that is not
/// idle (Documentation/scheduler/sched-domains.rst). If that takes longer than ten microseconds,
/// something delayed it, and no event says what. The task's wait on a run queue before it is moved
/// is charged to the activity of that queue's CPU.
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
        let queue = segment.queue(window).filter(|queue| queue.by_other)?;
        if queue.since.is_some_and(|queued| segment.to <= queued) {
            return Some(Culprit::default());
        }
        let next = segment.next_interrupt(window).filter(|_| !is_idle(segment))?;
        let asked = next.line == Line::Reschedule
            && next.late < AT_ONCE
            && segment.activity.softirq.is_none();
        asked.then_some(Culprit { line: Some(Line::Reschedule), ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;
    use latlab_core::explain::queue::Move;

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

    /// Queued on CPU 1 behind an urgent task until 27 000, and then moved to CPU 0.
    fn moved_from(waker_cpu: u32, former: &[(u64, u32, EventKind)]) -> Window {
        let mut window = scene(&[
            (19_000, STRESS, EventKind::SoftirqEnd),
            (28_000, STRESS, CALL),
            (28_500, STRESS, EventKind::InterruptEnd),
        ]);
        (window.due, window.expiry) = (window.waking, window.waking);
        window.waker_cpu = waker_cpu;
        window.moves = vec![Move { at: Nanos(27_000), from: 1, to: 0 }];
        let others = scene(former).events.into_iter().filter(|event| event.at < Nanos(29_000));
        if waker_cpu == 1 {
            window.elsewhere = others.collect();
        } else {
            (window.former_cpu, window.former) = (1, others.collect());
        }
        window
    }

    #[test]
    fn wait_in_the_queue_of_the_old_cpu_is_charged_to_what_runs_there() {
        let ticks = [
            (19_000, URGENT, EventKind::SoftirqEnd),
            (20_100, URGENT, timer_upon(PROGRAM)),
            (20_300, URGENT, EventKind::InterruptEnd),
        ];
        let window = moved_from(1, &ticks);
        let expected = [
            ("higher-priority", 100),
            ("interrupt", 200),
            ("higher-priority", 6_700),
            ("migration", 1_000),
            ("interrupt", 500),
        ];
        assert_eq!(charged(&window, METAL)[..5], expected);
        assert_eq!(blamed(&window, METAL, "higher-priority").task, Some(task(URGENT)));
    }

    #[test]
    fn wait_in_the_queue_of_a_third_cpu_begins_when_the_task_is_on_it() {
        let queued = [
            (19_000, PEER, EventKind::SoftirqEnd),
            (21_000, PEER, EventKind::Queued { pid: OURS, cpu: 1 }),
        ];
        let window = moved_from(2, &queued);
        let expected = [("migration", 1_000), ("equal-priority", 6_000), ("migration", 1_000)];
        assert_eq!(charged(&window, METAL)[..3], expected);
        let unknown = Window { former_cpu: 3, ..window.clone() };
        assert_eq!(explain(&unknown, &METAL).unexplained, Nanos(7_000), "nothing was kept");
        let lost = Window { lacks_moves: true, ..window };
        assert_eq!(explain(&lost, &METAL).unexplained, Nanos(7_000), "it was moved before, too");
    }

    #[test]
    fn throttling_in_the_queue_of_the_old_cpu_is_recognized_there() {
        let passed_over = [
            (19_000, URGENT, EventKind::SoftirqEnd),
            (22_000, URGENT, EventKind::Switch { next: task(STRESS), preempted: true }),
        ];
        let charges = charged(&moved_from(1, &passed_over), METAL);
        assert_eq!(charges[..2], [("higher-priority", 2_000), ("throttled", 5_000)]);
    }

    #[test]
    fn task_that_comes_back_to_its_cpu_waited_on_both() {
        let mut window = scene(&[
            (19_000, URGENT, EventKind::SoftirqEnd),
            (23_000, URGENT, EventKind::Switch { next: task(IDLE), preempted: false }),
        ]);
        (window.due, window.expiry) = (window.waking, window.waking);
        let moves = [(22_000, 0, 1), (25_000, 1, 0)];
        window.moves =
            moves.map(|(at, from, to)| Move { at: Nanos(at), from, to }).into_iter().collect();
        (window.former_cpu, window.former) = (1, scene(&[(19_000, PEER, CALL)]).events);
        window.former[0].kind = EventKind::SoftirqEnd;
        let expected =
            [("higher-priority", 2_000), ("equal-priority", 3_000), ("idle-exit", 5_000)];
        assert_eq!(charged(&window, METAL)[..3], expected);
    }
}
