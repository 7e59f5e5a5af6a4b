//! Callbacks of other timers.

use super::Cause;
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::Stretch;
use latlab_core::explain::{Line, Window};

/// The callbacks of other timers, one after another in one interrupt or softirq.
///
/// Recognized by what `timer:hrtimer_expire_entry` and `timer:timer_expire_entry` say of each
/// callback; its function is the one to blame. The callback that wakes the task is not counted: it
/// is the way of waking (Documentation/timers/hrtimers.rst). What comes on top of a callback, as
/// an interrupt upon a softirq, is not its own either.
#[derive(Debug, clap::Args)]
pub(super) struct TimerCallbacks;

impl Cause for TimerCallbacks {
    const ABOUT: About =
        About { name: "timer-callbacks", summary: "the callbacks of other timers were called" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let doing = &stretch.doing;
        let function = match doing.interrupt {
            None => doing.callback.or(doing.timer),
            Some((Line::Timer, _)) => doing.timer,
            Some(_) => None,
        }?;
        let who = Who { softirq: doing.softirq, stack: vec![function], ..Who::default() };
        (!stretch.is_in_waking_callback(window)).then_some(who)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn callbacks_before_and_after_the_one_that_wakes_are_others() {
        let expire = |function| What::Timer { function, due: Nanos(10_000) };
        let window = scene(&[
            (10_000, STRESS, timer_upon(PROGRAM)),
            (11_000, STRESS, expire(7)),
            (14_000, STRESS, What::TimerEnd),
            (19_000, STRESS, expire(8)),
            (21_000, STRESS, What::TimerEnd),
            (21_500, STRESS, expire(9)),
            (23_500, STRESS, What::TimerEnd),
            (24_000, STRESS, What::InterruptEnd),
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
    fn the_callback_of_an_ordinary_timer_has_a_function_and_its_softirq_none() {
        let window = scene(&[
            (20_500, STRESS, What::Softirq(1)),
            (21_000, STRESS, What::Callback { function: 5 }),
            (25_000, STRESS, What::CallbackEnd),
            (26_000, STRESS, What::SoftirqEnd),
        ]);
        assert!(charged(&window, METAL).contains(&("timer-callbacks", 4_000)));
        assert_eq!(blamed(&window, METAL, "timer-callbacks").softirq, Some(1));
    }
}
