//! The way to the task itself.

use super::{Cause, instead};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};

/// The scheduler went over to the task, and the task back to its program.
///
/// Recognized by what is left: from the switch to the task's own reading of the clock; and before
/// it, where the waking interrupt came upon a program, from which the kernel goes straight to the
/// scheduler (Documentation/core-api/entry.rst), or where one that does not say what it came upon is
/// followed by the switch within 10 us, not counting interrupts, softirqs and what was stolen. Every
/// wake-up has this part; if it is long, the caches are cold, or the host had a hand in it.
#[derive(Debug, clap::Args)]
pub(super) struct Dispatch;

impl Cause for Dispatch {
    const ABOUT: About = About {
        name: "dispatch",
        summary: "the switch to the task and its way back to the program",
    };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let other = instead(stretch, window).map(|(task, _)| task);
        let claimed = match stretch.phase {
            Phase::Slack | Phase::Due => false,
            Phase::Running => other.is_none(),
            Phase::Runnable => match other {
                Some(task) => {
                    let upon = window.last_interrupt(stretch.from);
                    let straight = !window.is_slow_to_switch(stretch.from);
                    !task.is_idle() && upon.is_some_and(|upon| upon.user || straight)
                }
                None => stretch.doing.task.is_some(),
            },
        };
        claimed.then(Who::default)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn from_a_program_through_the_scheduler_into_the_task() {
        let window = scene(&[(10_200, STRESS, timer_upon(PROGRAM)), ENDS_OF_STRESS]);
        assert_eq!(charged(&window, METAL), [("interrupt", 11_000), ("dispatch", 10_000)]);
    }

    #[test]
    fn a_call_of_another_cpu_is_followed_by_the_switch_unless_that_takes_long() {
        let called = |at| {
            let mut window = scene(&[
                (1_000, STRESS, What::SoftirqEnd),
                (at, STRESS, CALL),
                (at + 500, STRESS, What::InterruptEnd),
            ]);
            (window.waker_cpu, window.waking) = (1, Nanos(at));
            (window.due, window.expiry) = (window.waking, window.waking);
            window
        };
        assert_eq!(charged(&called(19_500), METAL)[1], ("dispatch", 11_000));
        let long = called(19_499);
        assert_eq!(charged(&long, METAL)[1], ("non-preemptable", 10_001));
        assert_eq!(blamed(&long, METAL, "non-preemptable").task, Some(task(STRESS)));
    }

    /// Another CPU calls at 19 500, which is handled for half a microsecond; then this.
    fn called_and_then(seen: &[(u64, u32, What)]) -> Window {
        let call = [(19_500, STRESS, CALL), (20_000, STRESS, What::InterruptEnd)];
        let mut window = scene(&[&call[..], seen].concat());
        (window.waker_cpu, window.waking) = (1, Nanos(19_500));
        (window.due, window.expiry) = (window.waking, window.waking);
        window
    }

    fn over_at(at: u64, mut window: Window) -> Window {
        let last = window.events.len() - 1;
        (window.events[last].at, window.switched) = (Nanos(at), Nanos(at));
        window.ran = Nanos(at);
        window
    }

    #[test]
    fn what_softirqs_and_the_host_take_does_not_make_the_kernel_slow() {
        let softirq = [(21_000, STRESS, What::Softirq(3)), (29_000, STRESS, What::SoftirqEnd)];
        let fast = over_at(38_000, called_and_then(&softirq));
        let expected =
            [("interrupt", 500), ("dispatch", 1_000), ("softirq", 8_000), ("dispatch", 9_000)];
        assert_eq!(charged(&fast, METAL), expected);
        let mut stolen = over_at(35_000, called_and_then(&[]));
        assert_eq!(charged(&stolen, GUEST)[1], ("non-preemptable", 15_000));
        stolen.events[2].stolen = Nanos(5_000);
        assert_eq!(charged(&stolen, GUEST)[1..], [("dispatch", 10_000), ("host", 5_000)]);
    }

    #[test]
    fn the_tail_of_a_long_wait_is_no_dispatch() {
        let cut = (32_000, STRESS, What::Queued { pid: PEER, cpu: 0 });
        let mut window = over_at(35_000, called_and_then(&[]));
        window.events.insert(2, Event { at: Nanos(cut.0), what: cut.2, ..window.events[1] });
        assert!(charged(&window, METAL).iter().all(|(cause, _)| *cause != "dispatch"));
    }

    #[test]
    fn nobody_knows_what_happened_before_the_first_event() {
        let mut window = scene(&[]);
        window.events.clear();
        let explained = explain(&window, &METAL);
        assert_eq!(explained.unexplained, window.latency() - Nanos(1_000));
        assert_eq!(charged(&window, METAL), [("dispatch", 1_000)]);
    }
}
