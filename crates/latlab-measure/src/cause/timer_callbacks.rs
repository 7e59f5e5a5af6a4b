//! Callbacks of other timers ran.

use super::Cause;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::Segment;
use latlab_core::explain::{Line, Window};
use latlab_part::part::{About, Describe};

/// The callbacks of other timers ran, one after another in one interrupt or softirq.
///
/// Recognized by `timer:hrtimer_expire_entry` and `timer:timer_expire_entry` of each callback; the
/// culprit is its function. The callback that wakes the task does not count, as it is part of the
/// wake-up (Documentation/timers/hrtimers.rst), nor does whatever runs on top of a callback, such
/// as an interrupt on top of a softirq.
#[derive(Debug, clap::Args)]
pub(super) struct TimerCallbacks;

impl Describe for TimerCallbacks {
    const ABOUT: About =
        About { name: "timer-callbacks", summary: "callbacks of other timers ran" };
}

impl Cause for TimerCallbacks {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let activity = &segment.activity;
        let function = match activity.interrupt {
            None => activity.callback.or(activity.timer),
            Some((Line::Timer, _)) => activity.timer,
            Some(_) => None,
        }?;
        let culprit =
            Culprit { softirq: activity.softirq, stack: vec![function], ..Culprit::default() };
        (!segment.is_in_waking_callback(window)).then_some(culprit)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn callbacks_before_and_after_waking_one_are_charged() {
        let expire = |function| EventKind::Timer { function, due: Nanos(10_000) };
        let window = scene(&[
            (10_000, STRESS, timer_upon(PROGRAM)),
            (11_000, STRESS, expire(7)),
            (14_000, STRESS, EventKind::TimerEnd),
            (19_000, STRESS, expire(8)),
            (21_000, STRESS, EventKind::TimerEnd),
            (21_500, STRESS, expire(9)),
            (23_500, STRESS, EventKind::TimerEnd),
            (24_000, STRESS, EventKind::InterruptEnd),
        ]);
        let charges = charged(&window, METAL);
        let expected = [
            ("interrupt", 1_000),
            ("timer-callbacks", 3_000),
            ("interrupt", 7_500),
            ("timer-callbacks", 2_000),
            ("interrupt", 500),
        ];
        assert_eq!(charges[..5], expected);
        assert_eq!(blamed(&window, METAL, "timer-callbacks").stack, [7]);
    }

    #[test]
    fn callback_in_softirq_is_charged_with_its_function_and_softirq() {
        let window = scene(&[
            (20_500, STRESS, EventKind::Softirq(1)),
            (21_000, STRESS, EventKind::Callback { function: 5 }),
            (25_000, STRESS, EventKind::CallbackEnd),
            (26_000, STRESS, EventKind::SoftirqEnd),
        ]);
        assert!(charged(&window, METAL).contains(&("timer-callbacks", 4_000)));
        assert_eq!(blamed(&window, METAL, "timer-callbacks").softirq, Some(1));
    }
}
