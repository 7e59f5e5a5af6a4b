//! The context switch to the task.

use super::{Cause, instead};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_part::part::{About, Describe};

/// The scheduler switched to the task, and the task returned to user space.
///
/// Recognized as the time that no other cause claims: the time from the context switch until the
/// task reads the clock; and the time before the switch, if the waking interrupt came in user
/// space, from where the kernel goes straight to the scheduler (Documentation/core-api/entry.rst),
/// or if the context of the interrupt is not known and the switch follows within 10 us, not
/// counting interrupts, softirqs and stolen time. Every wake-up has this part. If it is long,
/// caches are cold or the host took time.
#[derive(Debug, clap::Args)]
pub(super) struct Dispatch;

impl Describe for Dispatch {
    const ABOUT: About =
        About { name: "dispatch", summary: "context switch and return to user space" };
}

impl Cause for Dispatch {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let other = instead(segment, window).map(|(task, _)| task);
        let claimed = match segment.phase {
            Phase::Stopped | Phase::Slack | Phase::Due => false,
            Phase::Running => other.is_none(),
            Phase::Runnable if window.lacks_interrupts => false,
            Phase::Runnable => match other {
                Some(task) => {
                    let context = window.last_interrupt(segment);
                    let straight = !window.is_slow_to_switch(segment);
                    !task.is_idle() && context.is_some_and(|context| context.user || straight)
                }
                None => segment.activity.task.is_some(),
            },
        };
        claimed.then(Culprit::default)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn dispatch_after_interrupt_of_user_space_includes_way_to_scheduler() {
        let window = scene(&[(10_200, STRESS, timer_upon(PROGRAM)), ENDS_OF_STRESS]);
        assert_eq!(charged(&window, METAL), [("interrupt", 11_000), ("dispatch", 10_000)]);
    }

    #[test]
    fn dispatch_after_reschedule_ipi_is_charged_up_to_ten_microseconds() {
        let called = |at| {
            let mut window = scene(&[
                (1_000, STRESS, EventKind::SoftirqEnd),
                (at, STRESS, CALL),
                (at + 500, STRESS, EventKind::InterruptEnd),
            ]);
            (window.waker_cpu, window.waking) = (1, Nanos(at));
            (window.due, window.expiry) = (window.waking, window.waking);
            window
        };
        assert_eq!(charged(&called(19_500), METAL)[1], ("dispatch", 11_000));
        let long = called(19_499);
        assert_eq!(charged(&long, METAL)[1], ("non-preemptible", 10_001));
        assert_eq!(blamed(&long, METAL, "non-preemptible").task, Some(task(STRESS)));
    }

    /// A reschedule IPI at 19 500 that is handled for half a microsecond, followed by these events.
    fn after_call(seen: &[(u64, u32, EventKind)]) -> Window {
        let call = [(19_500, STRESS, CALL), (20_000, STRESS, EventKind::InterruptEnd)];
        let mut window = scene(&[&call[..], seen].concat());
        (window.waker_cpu, window.waking) = (1, Nanos(19_500));
        (window.due, window.expiry) = (window.waking, window.waking);
        window
    }

    fn switched_at(at: u64, mut window: Window) -> Window {
        let last = window.events.len() - 1;
        (window.events[last].at, window.switched) = (Nanos(at), Nanos(at));
        window.ran = Nanos(at);
        window
    }

    #[test]
    fn time_of_softirqs_and_host_does_not_count_as_slow_switch() {
        let softirq =
            [(21_000, STRESS, EventKind::Softirq(3)), (29_000, STRESS, EventKind::SoftirqEnd)];
        let fast = switched_at(38_000, after_call(&softirq));
        let expected =
            [("interrupt", 500), ("dispatch", 1_000), ("softirq", 8_000), ("dispatch", 9_000)];
        assert_eq!(charged(&fast, METAL), expected);
        let mut stolen = switched_at(35_000, after_call(&[]));
        assert_eq!(charged(&stolen, GUEST)[1], ("non-preemptible", 15_000));
        stolen.events[2].stolen = Nanos(5_000);
        assert_eq!(charged(&stolen, GUEST)[1..], [("dispatch", 10_000), ("host", 5_000)]);
    }

    #[test]
    fn end_of_long_wait_is_not_charged_to_dispatch() {
        let cut = (32_000, STRESS, EventKind::Queued { pid: PEER, cpu: 0 });
        let mut window = switched_at(35_000, after_call(&[]));
        window.events.insert(2, Event { at: Nanos(cut.0), kind: cut.2, ..window.events[1] });
        assert!(charged(&window, METAL).iter().all(|(cause, _)| *cause != "dispatch"));
    }

    #[test]
    fn time_before_first_event_is_unexplained() {
        let mut window = scene(&[]);
        window.events.clear();
        let explained = explain(&window, &METAL);
        assert_eq!(explained.unexplained, window.latency() - Nanos(1_000));
        assert_eq!(charged(&window, METAL), [("dispatch", 1_000)]);
    }
}
