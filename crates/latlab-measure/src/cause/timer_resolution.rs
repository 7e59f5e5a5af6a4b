//! The timer was not due earlier.

use super::Cause;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_part::part::{About, Describe};

/// The timer had not expired yet, because of timer slack or because timers fire at ticks only.
///
/// Recognized by the difference between the requested time and the time that the timer was set to
/// (`PR_SET_TIMERSLACK`, prctl(2); real-time tasks have none), and, without high-resolution timers,
/// by the time from there to the tick, at most one tick: what comes after a tick is charged to
/// other causes. What the CPU does meanwhile does not matter. It is the timer resolution latency of
/// Abeni et al., "A Measurement-Based Analysis of the Real-Time Performance of Linux" (RTAS 2002).
#[derive(Debug, clap::Args)]
pub(super) struct TimerResolution;

impl Describe for TimerResolution {
    const ABOUT: About =
        About { name: "timer-resolution", summary: "timer slack, or wait for the next tick" };
}

impl Cause for TimerResolution {
    fn claim(segment: &Segment, window: &Window, machine: &Circumstances) -> Option<Culprit> {
        let tick = window.expiry + machine.timer_resolution;
        let at_tick = segment.phase == Phase::Due
            && !machine.precise()
            && window.waits_for_timer()
            && segment.to <= tick
            && !segment.is_in_timer_interrupt();
        (segment.phase == Phase::Slack || at_tick).then(Culprit::default)
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    /// A timer set to 13 000, with the tick at 15 000.
    fn at_tick() -> Window {
        let mut window = scene(&[
            (5_000, STRESS, EventKind::Softirq(3)),
            (14_000, STRESS, EventKind::SoftirqEnd),
            (15_000, STRESS, timer_upon(PROGRAM)),
        ]);
        window.expiry = Nanos(13_000);
        window
    }

    #[test]
    fn slack_and_wait_for_tick_are_charged_whatever_cpu_did() {
        let machine = Circumstances { timer_resolution: Nanos(4_000_000), hypervisor: false };
        let charges = charged(&at_tick(), machine);
        assert_eq!(charges[..2], [("timer-resolution", 5_000), ("interrupt", 15_000)]);
    }

    #[test]
    fn delay_beyond_one_tick_is_not_charged_to_resolution() {
        let mut window = at_tick();
        window.events.remove(0);
        window.events[1].kind = timer_upon(KERNEL);
        let machine = Circumstances { timer_resolution: Nanos(1_500), hypervisor: false };
        let charges = charged(&window, machine);
        assert_eq!(charges[..2], [("timer-resolution", 4_500), ("interrupts-off", 500)]);
    }

    #[test]
    fn late_high_resolution_timer_is_charged_with_slack_only() {
        let slack = charged(&at_tick(), Circumstances { timer_resolution: Nanos(1), ..METAL });
        assert_eq!(slack[0], ("timer-resolution", 3_000));
        assert_ne!(slack[1].0, "timer-resolution");
    }
}
