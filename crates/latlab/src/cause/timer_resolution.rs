//! The timer was not meant to fire earlier.

use super::Cause;
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};

/// The timer was not meant to fire earlier: the kernel gave it slack, or it fires at ticks only.
///
/// Recognized by the slack between the moment asked for and the moment the timer was set to
/// (`PR_SET_TIMERSLACK`, prctl(2); real-time tasks have none), and, where timers have no high
/// resolution, by the time from there to the tick, at most one tick: what comes after a tick is
/// charged to others. What the CPU does meanwhile does not matter. It is the timer resolution
/// latency of Abeni et al., "A Measurement-Based Analysis of the Real-Time Performance of Linux"
/// (RTAS 2002).
#[derive(Debug, clap::Args)]
pub(super) struct TimerResolution;

impl Cause for TimerResolution {
    const ABOUT: About = About {
        name: "timer-resolution",
        summary: "the timer was not meant to fire earlier: slack, or a tick",
    };

    fn claim(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who> {
        let tick = window.expiry + machine.timer_resolution;
        let at_tick = stretch.phase == Phase::Due
            && !machine.precise()
            && window.waits_for_timer()
            && stretch.to <= tick
            && !stretch.is_in_timer_interrupt();
        (stretch.phase == Phase::Slack || at_tick).then(Who::default)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    /// Set to 13 000, of which the tick is at 15 000.
    fn at_tick() -> Window {
        let mut window = scene(&[
            (5_000, STRESS, What::Softirq(3)),
            (14_000, STRESS, What::SoftirqEnd),
            (15_000, STRESS, timer_upon(PROGRAM)),
        ]);
        window.expiry = Nanos(13_000);
        window
    }

    #[test]
    fn slack_and_tick_count_whatever_the_cpu_did() {
        let machine = Circumstances { timer_resolution: Nanos(4_000_000), hypervisor: false };
        let charges = charged(&at_tick(), machine);
        assert_eq!(charges[..2], [("timer-resolution", 5_000), ("interrupt", 15_000)]);
    }

    #[test]
    fn more_than_a_tick_is_not_the_timers() {
        let mut window = at_tick();
        window.events.remove(0);
        window.events[1].what = timer_upon(KERNEL);
        let machine = Circumstances { timer_resolution: Nanos(1_500), hypervisor: false };
        let charges = charged(&window, machine);
        assert_eq!(charges[..2], [("timer-resolution", 4_500), ("interrupts-off", 500)]);
    }

    #[test]
    fn a_precise_timer_that_is_late_was_kept_from_coming() {
        let slack = charged(&at_tick(), Circumstances { timer_resolution: Nanos(1), ..METAL });
        assert_eq!(slack[0], ("timer-resolution", 3_000));
        assert_ne!(slack[1].0, "timer-resolution");
    }
}
