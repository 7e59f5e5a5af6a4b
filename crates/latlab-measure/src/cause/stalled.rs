//! A CPU of a virtual machine took an interrupt late.

use super::{Cause, DELIVERY, is_idle};
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::evidence::AT_ONCE;
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{Line, Window};
use latlab_part::part::{About, Describe};

/// The CPU took an interrupt late, and no event shows why: either the kernel had interrupts
/// disabled, or the host of this virtual machine delayed it without reporting steal time.
///
/// Recognized by late interrupts that neither `host` nor `interrupts-off` claims: an interrupt in
/// kernel context later than kernels have interrupts disabled, or an interrupt of unknown context;
/// for an interrupt from another CPU, later than 10 us. The named task had the CPU, and need not be
/// the culprit.
#[derive(Debug, clap::Args)]
pub(super) struct Stalled;

impl Describe for Stalled {
    const ABOUT: About = About {
        name: "stalled",
        summary: "interrupt delivered late, delayed by the kernel or by the host",
    };
}

impl Cause for Stalled {
    fn claim(segment: &Segment, window: &Window, machine: &Circumstances) -> Option<Culprit> {
        if !machine.hypervisor || is_idle(segment) {
            return None;
        }
        let next = segment.next_interrupt(window)?;
        let late = match segment.phase {
            Phase::Due => {
                window.waits_for_interrupt(segment) && next.late >= DELIVERY && !next.context.user
            }
            Phase::Runnable => {
                let by_other = segment.queue(window).is_some_and(|queue| queue.by_other);
                by_other && next.line == Line::Reschedule && next.late >= AT_ONCE
            }
            Phase::Stopped | Phase::Slack | Phase::Running => false,
        };
        let (task, stack) = (segment.activity.task, window.interrupted(next.context));
        late.then_some(Culprit { task, stack, ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn reschedule_ipi_delayed_in_guest_is_charged_to_stalled() {
        let called = |waking| {
            let mut window =
                scene(&[(1_000, STRESS, EventKind::SoftirqEnd), (25_000, STRESS, CALL)]);
            (window.waker_cpu, window.waking) = (1, Nanos(waking));
            (window.due, window.expiry) = (window.waking, window.waking);
            window
        };
        assert_eq!(charged(&called(15_000), GUEST)[0], ("stalled", 10_000));
        assert_eq!(blamed(&called(15_000), GUEST, "stalled").task, Some(task(STRESS)));
        assert_eq!(charged(&called(15_001), GUEST)[0].0, "migration");
    }

    #[test]
    fn late_timer_of_unknown_context_is_charged_to_stalled_in_guest_only() {
        let late = scene(&[(19_000, STRESS, timer_upon(InterruptedContext::default()))]);
        assert_eq!(charged(&late, GUEST)[0], ("stalled", 9_000));
        assert!(charged(&late, METAL).iter().all(|(cause, _)| *cause != "stalled"));
        for context in [KERNEL, PROGRAM] {
            let known = scene(&[(19_000, STRESS, timer_upon(context))]);
            assert!(charged(&known, GUEST).iter().all(|(cause, _)| *cause != "stalled"));
        }
    }
}
