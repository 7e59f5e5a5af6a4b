//! A CPU of a virtual machine did not hear what it was told.

use super::{Cause, DELIVERY, is_idle};
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::evidence::AT_ONCE;
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{Line, Window};

/// An interrupt had been sent to the CPU, and the CPU took it late: the kernel had interrupts off,
/// or the host of this virtual machine held it without counting that as stolen. Nothing tells which.
///
/// Recognized by what neither `host` nor `interrupts-off` claims: an interrupt that comes upon the
/// kernel later than kernels have them off, or one that does not say what it came upon; where another
/// CPU calls, later than 10 us. The task is the one that had the CPU, and need not be to blame.
#[derive(Debug, clap::Args)]
pub(super) struct Stalled;

impl Cause for Stalled {
    const ABOUT: About = About {
        name: "stalled",
        summary: "an interrupt came late: kept off by the kernel, or by the host",
    };

    fn claim(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who> {
        if !machine.hypervisor || is_idle(stretch) {
            return None;
        }
        let next = stretch.next_interrupt(window)?;
        let late = match stretch.phase {
            Phase::Due => next.late >= DELIVERY && !next.upon.user,
            Phase::Runnable => {
                let elsewhere = window.waker_cpu != window.cpu || window.was_moved();
                elsewhere && next.line == Line::Reschedule && next.late >= AT_ONCE
            }
            Phase::Slack | Phase::Running => false,
        };
        let (task, stack) = (stretch.doing.task, window.interrupted(next.upon));
        late.then_some(Who { task, stack, ..Who::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn what_keeps_a_call_off_for_long_is_said_without_a_guess() {
        let called = |waking| {
            let mut window = scene(&[(1_000, STRESS, What::SoftirqEnd), (25_000, STRESS, CALL)]);
            (window.waker_cpu, window.waking) = (1, Nanos(waking));
            (window.due, window.expiry) = (window.waking, window.waking);
            window
        };
        assert_eq!(charged(&called(15_000), GUEST)[0], ("stalled", 10_000));
        assert_eq!(blamed(&called(15_000), GUEST, "stalled").task, Some(task(STRESS)));
        assert_eq!(charged(&called(15_001), GUEST)[0].0, "migration");
    }

    #[test]
    fn a_timer_that_comes_late_upon_nobody_knows_what_is_one_in_a_virtual_machine() {
        let late = scene(&[(19_000, STRESS, timer_upon(Upon::default()))]);
        assert_eq!(charged(&late, GUEST)[0], ("stalled", 9_000));
        assert!(charged(&late, METAL).iter().all(|(cause, _)| *cause != "stalled"));
        for upon in [KERNEL, PROGRAM] {
            let known = scene(&[(19_000, STRESS, timer_upon(upon))]);
            assert!(charged(&known, GUEST).iter().all(|(cause, _)| *cause != "stalled"));
        }
    }
}
