//! The IRQ thread had not woken the task yet.

use super::Cause;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{Event, EventKind, Task, Window};
use latlab_part::part::{About, Describe};

/// The interrupt had been handled, but the IRQ thread that it woke had not woken the task yet.
///
/// Recognized by the name of the waker (`irq/…`, or ksoftirqd and ktimers, which run the softirqs
/// of real-time kernels), from the end of the handler that woke that thread until it wakes the task
/// (Documentation/core-api/genericirq.rst, threaded handlers; `threadirqs` in
/// Documentation/admin-guide/kernel-parameters.txt). Where a task of no lower priority has the CPU
/// meanwhile, it is named: the thread is `behind` it, and needs a higher priority. Softirqs that run
/// in the thread are charged as such.
#[derive(Debug, clap::Args)]
pub(super) struct InterruptThread;

impl Describe for InterruptThread {
    const ABOUT: About = About {
        name: "interrupt-thread",
        summary: "the IRQ thread that wakes the task had not run yet",
    };
}

impl Cause for InterruptThread {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let activity = &segment.activity;
        let thread = window.waker;
        // Softirqs are raised in a handler, and their thread is woken after it.
        let handled =
            |event: &Event| event.at == segment.from && event.kind == EventKind::InterruptEnd;
        let is_awaited = |since| {
            segment.from >= since
                || segment.to == since && segment.events(window).iter().any(handled)
        };
        let chain = segment.phase == Phase::Due
            && activity.interrupt.is_none()
            && window.thread_runnable().is_some_and(is_awaited);
        let is_in_front =
            |task: &Task| task.pid != thread.pid && !task.is_idle() && task.prio <= thread.prio;
        let behind = activity.task.filter(is_in_front);
        chain.then_some(Culprit { task: Some(thread), behind, ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::tests::*;

    /// The time that is charged to the thread, in ns.
    fn awaited(window: &Window, circumstances: Circumstances) -> u64 {
        let all = charged(window, circumstances).into_iter();
        all.filter(|(cause, _)| *cause == "interrupt-thread").map(|(_, time)| time).sum()
    }

    #[test]
    fn interrupt_thread_is_charged_from_its_own_wake_up() {
        let mut window = scene(&[
            (10_400, STRESS, EventKind::Interrupt { line: Line::Device(24), context: PROGRAM }),
            (11_000, STRESS, EventKind::Waking { task: task(THREAD), cpu: 0 }),
            (12_000, STRESS, EventKind::InterruptEnd),
            (15_000, STRESS, EventKind::Switch { next: task(THREAD), preempted: true }),
        ]);
        window.waker = task(THREAD);
        let charges = charged(&window, METAL);
        assert_eq!(charges[..2], [("interrupt", 2_000), ("interrupt-thread", 8_000)]);
        assert_eq!(blamed(&window, METAL, "interrupt-thread").task, Some(task(THREAD)));
        window.waker = task(STRESS);
        assert_eq!(explain(&window, &METAL).unexplained, Nanos(8_000));
    }

    #[test]
    fn task_in_front_of_the_interrupt_thread_is_named() {
        let mut window = scene(&[
            (10_400, URGENT, EventKind::Interrupt { line: Line::Device(24), context: PROGRAM }),
            (11_000, URGENT, EventKind::Waking { task: task(THREAD), cpu: 0 }),
            (12_000, URGENT, EventKind::InterruptEnd),
            (15_000, URGENT, EventKind::Switch { next: task(THREAD), preempted: false }),
        ]);
        window.waker = task(THREAD);
        let found = explain(&window, &METAL).charges;
        let behind = found.iter().map(|charge| (charge.length().0, charge.culprit.behind));
        assert_eq!(behind.collect::<Vec<_>>()[1..3], [(3_000, Some(task(URGENT))), (5_000, None)]);
    }

    /// The tick comes while the interrupt's thread waits: it is not the interrupt waited for.
    #[test]
    fn interrupt_after_the_one_of_the_thread_was_not_delayed() {
        for context in [PROGRAM, KERNEL] {
            let mut window = scene(&[
                (10_400, URGENT, EventKind::Interrupt { line: Line::Device(24), context: PROGRAM }),
                (11_000, URGENT, EventKind::Waking { task: task(THREAD), cpu: 0 }),
                (12_000, URGENT, EventKind::InterruptEnd),
                (16_000, URGENT, timer_upon(context)),
                (16_500, URGENT, EventKind::InterruptEnd),
                (18_000, URGENT, EventKind::Switch { next: task(THREAD), preempted: true }),
            ]);
            window.waker = task(THREAD);
            assert_eq!(awaited(&window, GUEST), 4_000 + 1_500 + 2_000);
        }
    }

    /// Its wake-up was before the task was due, and its next interrupt comes late.
    #[test]
    fn late_interrupt_is_not_charged_to_a_thread_that_was_runnable_before() {
        let mut window = scene(&[
            (9_000, STRESS, EventKind::Waking { task: task(THREAD), cpu: 0 }),
            (15_000, STRESS, EventKind::Interrupt { line: Line::Device(24), context: KERNEL }),
            (15_500, STRESS, EventKind::InterruptEnd),
            (18_000, STRESS, EventKind::Switch { next: task(THREAD), preempted: true }),
        ]);
        window.waker = task(THREAD);
        let expected = [("interrupts-off", 5_000), ("interrupt", 500), ("interrupt-thread", 4_500)];
        assert_eq!(charged(&window, METAL)[..3], expected);
    }

    /// The thread already waits to call an earlier timer, so no interrupt is programmed for this one.
    /// The first interrupt that comes is the tick's.
    #[test]
    fn timer_is_not_waited_for_where_the_thread_that_calls_it_was_runnable_before() {
        let scene = |tick| {
            let mut window = scene(&[
                (9_000, URGENT, EventKind::Waking { task: task(KSOFTIRQD), cpu: 0 }),
                (25_000, URGENT, timer_upon(KERNEL)),
                (25_000, URGENT, EventKind::Timer { function: 7, due: Nanos(tick) }),
                (25_500, URGENT, EventKind::TimerEnd),
                (26_000, URGENT, EventKind::InterruptEnd),
                (27_000, URGENT, EventKind::Switch { next: task(KSOFTIRQD), preempted: false }),
                (27_500, KSOFTIRQD, EventKind::Softirq(8)),
            ]);
            (window.waker, window.waking) = (task(KSOFTIRQD), Nanos(28_000));
            window
        };
        let on_time = scene(24_000);
        assert_eq!(charged(&on_time, METAL)[0], ("interrupt-thread", 15_000));
        let culprit = blamed(&on_time, METAL, "interrupt-thread");
        assert_eq!(culprit.behind, Some(task(URGENT)));
        // A tick that was due earlier came late, too.
        assert_eq!(charged(&scene(14_000), METAL)[0], ("interrupts-off", 15_000));
    }

    /// The thread is woken on the way out of the interrupt.
    #[test]
    fn thread_is_charged_from_the_end_of_the_handler_that_raised_the_softirq() {
        let mut window = scene(&[
            (10_400, STRESS, timer_upon(PROGRAM)),
            (12_000, STRESS, EventKind::InterruptEnd),
            (12_400, STRESS, EventKind::Waking { task: task(KSOFTIRQD), cpu: 0 }),
            (13_000, STRESS, EventKind::Switch { next: task(KSOFTIRQD), preempted: true }),
        ]);
        window.waker = task(KSOFTIRQD);
        // Until it is switched to.
        assert_eq!(charged(&window, METAL)[1], ("interrupt-thread", 1_000));
        assert_eq!(explain(&window, &METAL).unexplained, Nanos(0));
    }

    /// On PREEMPT_RT, a task that runs softirqs holds a lock that the thread then waits for. It was
    /// woken after the task was due, or before.
    #[test]
    fn thread_is_charged_while_it_waits_for_a_lock() {
        for woken in [11_000, 9_000] {
            let mut events = [
                (woken, STRESS, EventKind::Waking { task: task(KSOFTIRQD), cpu: 0 }),
                (10_400, STRESS, timer_upon(PROGRAM)),
                (12_000, STRESS, EventKind::InterruptEnd),
                (13_000, STRESS, EventKind::Switch { next: task(KSOFTIRQD), preempted: true }),
                (14_000, KSOFTIRQD, EventKind::Switch { next: task(STRESS), preempted: false }),
                (18_000, STRESS, EventKind::Waking { task: task(KSOFTIRQD), cpu: 0 }),
                (18_500, STRESS, EventKind::Switch { next: task(KSOFTIRQD), preempted: true }),
            ];
            events.sort_by_key(|(at, ..)| *at);
            let mut window = scene(&events);
            window.waker = task(KSOFTIRQD);
            assert_eq!(awaited(&window, METAL), 8_000);
            assert_eq!(explain(&window, &METAL).unexplained, Nanos(0));
        }
    }

    /// It was woken for another softirq first, and slept until the interrupt came, which was late.
    #[test]
    fn thread_that_sleeps_again_is_waited_for_from_its_next_interrupt_on() {
        let mut window = scene(&[
            (10_400, STRESS, EventKind::Interrupt { line: Line::Device(24), context: PROGRAM }),
            (11_000, STRESS, EventKind::InterruptEnd),
            (11_200, STRESS, EventKind::Waking { task: task(KSOFTIRQD), cpu: 0 }),
            (11_500, STRESS, EventKind::Switch { next: task(KSOFTIRQD), preempted: true }),
            (12_000, KSOFTIRQD, EventKind::Switch { next: task(STRESS), preempted: false }),
            (17_000, STRESS, timer_upon(KERNEL)),
            (18_000, STRESS, EventKind::InterruptEnd),
            (18_200, STRESS, EventKind::Waking { task: task(KSOFTIRQD), cpu: 0 }),
            (18_500, STRESS, EventKind::Switch { next: task(KSOFTIRQD), preempted: true }),
        ]);
        window.waker = task(KSOFTIRQD);
        assert_eq!(awaited(&window, METAL), 2_000);
    }

    /// On PREEMPT_RT, timers of programs expire in a thread that runs softirqs.
    #[test]
    fn thread_that_calls_timers_is_charged_until_it_runs() {
        let mut window = scene(&[
            (10_400, URGENT, timer_upon(PROGRAM)),
            (11_000, URGENT, EventKind::Waking { task: task(KSOFTIRQD), cpu: 0 }),
            (12_000, URGENT, EventKind::InterruptEnd),
            (18_000, URGENT, EventKind::Switch { next: task(KSOFTIRQD), preempted: false }),
            (18_500, KSOFTIRQD, EventKind::Softirq(8)),
            (19_000, KSOFTIRQD, EventKind::Timer { function: 9, due: Nanos(10_000) }),
        ]);
        window.waker = task(KSOFTIRQD);
        let thread: Vec<_> = charged(&window, METAL)
            .into_iter()
            .filter(|(cause, _)| *cause == "interrupt-thread")
            .collect();
        assert_eq!(thread, [("interrupt-thread", 6_000), ("interrupt-thread", 500)]);
    }
}
