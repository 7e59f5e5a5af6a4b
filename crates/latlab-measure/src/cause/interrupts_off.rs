//! The kernel had interrupts disabled.

use super::{Cause, DELIVERY, is_idle};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::Segment;
use latlab_core::time::Nanos;
use latlab_part::part::{About, Describe};

/// The kernel had interrupts disabled, which delayed the interrupt that was to wake the task.
///
/// Recognized by an interrupt that comes late and in kernel context while no other handler ran. The
/// culprits are the task and the function that the interrupt came in, which is where the kernel
/// enabled interrupts again. Less than a microsecond counts as the delivery of the interrupt. In a
/// virtual machine the host may have delivered the interrupt late: a delay of more than a
/// millisecond there, not counting stolen time, is `stalled`, as hardly any kernel has interrupts
/// disabled for so long. The kernel's irqsoff tracer measures the same
/// (Documentation/trace/ftrace.rst).
#[derive(Debug, clap::Args)]
pub(super) struct InterruptsOff;

/// Longest delay in a virtual machine that is charged to the kernel; longer ones are more likely
/// the host's.
const LONGEST_IN_GUEST: Nanos = Nanos::from_millis(1);

impl Describe for InterruptsOff {
    const ABOUT: About = About {
        name: "interrupts-off",
        summary: "IRQs disabled in kernel context; IRQ delivery delayed",
    };
}

impl Cause for InterruptsOff {
    fn claim(segment: &Segment, window: &Window, machine: &Circumstances) -> Option<Culprit> {
        if is_idle(segment) || window.lacks_interrupts || !window.waits_for_interrupt(segment) {
            return None;
        }
        let next = segment.next_interrupt(window).filter(|next| next.context.is_kernel())?;
        let (task, stack) = (segment.activity.task, window.interrupted(next.context));
        let plausible = next.late - next.stolen <= LONGEST_IN_GUEST;
        let delayed = next.late >= DELIVERY && (plausible || !machine.hypervisor);
        delayed.then_some(Culprit { task, stack, ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn culprit_is_function_below_handler_on_stack() {
        let mut window = scene(&[(19_000, STRESS, timer_upon(KERNEL))]);
        window.waking_stack = vec![1, 2, KERNEL.ip, 40, 41];
        assert_eq!(charged(&window, METAL)[0], ("interrupts-off", 9_000));
        let culprit = blamed(&window, METAL, "interrupts-off");
        assert_eq!((culprit.task, culprit.stack), (Some(task(STRESS)), vec![KERNEL.ip, 40, 41]));
        window.waking_stack = vec![1, 2];
        assert_eq!(blamed(&window, METAL, "interrupts-off").stack, [KERNEL.ip]);
    }

    #[test]
    fn interrupts_off_in_softirq_is_not_charged_to_softirq() {
        let window = scene(&[
            (5_000, STRESS, EventKind::Softirq(3)),
            (17_000, STRESS, EventKind::SoftirqEnd),
            (19_000, STRESS, timer_upon(KERNEL)),
        ]);
        assert_eq!(charged(&window, METAL)[0], ("interrupts-off", 9_000));
    }

    #[test]
    fn idle_cpu_and_user_space_are_not_charged_with_interrupts_off() {
        let idle = scene(&[(19_000, IDLE, timer_upon(KERNEL))]);
        let program = scene(&[(19_000, STRESS, timer_upon(PROGRAM))]);
        for window in [idle, program] {
            assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "interrupts-off"));
        }
    }

    #[test]
    fn context_of_ipi_is_taken_from_timer_interrupt_that_was_delayed_too() {
        let expired = |context, again, due| {
            scene(&[
                (18_000, STRESS, CALL),
                (18_500, STRESS, EventKind::InterruptEnd),
                (again, STRESS, timer_upon(context)),
                (again + 100, STRESS, EventKind::Timer { function: 8, due: Nanos(due) }),
            ])
        };
        let both = |context, again| expired(context, again, 18_000);
        let at_once = both(KERNEL, 19_500);
        assert_eq!(charged(&at_once, METAL)[0], ("interrupts-off", 8_000));
        assert_eq!(blamed(&at_once, METAL, "interrupts-off").stack, [KERNEL.ip]);
        assert_eq!(charged(&both(PROGRAM, 19_500), GUEST)[0], ("host", 8_000));
        let mut later = both(KERNEL, 29_000);
        (later.waking, later.switched) = (Nanos(29_500), Nanos(30_000));
        assert_ne!(charged(&later, METAL)[0].0, "interrupts-off");
        let just_came = expired(KERNEL, 19_500, 18_001);
        assert_ne!(charged(&just_came, METAL)[0].0, "interrupts-off");
        let mut device = both(KERNEL, 19_500);
        device.events[2].kind = EventKind::Interrupt { line: Line::Device(3), context: KERNEL };
        assert_ne!(charged(&device, METAL)[0].0, "interrupts-off");
    }

    #[test]
    fn interrupt_of_unknown_context_is_unexplained() {
        let window = scene(&[(19_000, STRESS, timer_upon(InterruptedContext::default()))]);
        assert_eq!(explain(&window, &METAL).unexplained, Nanos(9_000));
    }

    #[test]
    fn delay_above_a_millisecond_in_guest_is_charged_to_stalled() {
        let late = |late| {
            let mut window = scene(&[(19_000, STRESS, timer_upon(KERNEL))]);
            window.due = Nanos(10_000_000);
            window.expiry = window.due;
            window.events[0].at = window.due + late;
            window.waking = window.events[0].at;
            window.switched = window.waking;
            window.ran = window.waking;
            window.events.truncate(1);
            window
        };
        let (just, more) = (late(Nanos::from_millis(1)), late(Nanos(1_000_001)));
        assert_eq!(charged(&just, GUEST), [("interrupts-off", 1_000_000)]);
        assert_eq!(charged(&more, GUEST), [("stalled", 1_000_001)]);
        let mut stolen = late(Nanos(1_200_000));
        stolen.events.insert(0, Event { at: Nanos(1), ..stolen.events[0] });
        stolen.events[0].kind = EventKind::SoftirqEnd;
        stolen.events[1].stolen = Nanos(300_000);
        let expected = [("interrupts-off", 900_000), ("host", 300_000)];
        assert_eq!(charged(&stolen, GUEST), expected);
        // The same, with time stolen before an event that may cover time before the task was due.
        let before =
            Event { at: stolen.due + Nanos(1), stolen: Nanos(300_000), ..stolen.events[0] };
        stolen.events.insert(1, before);
        stolen.events[2].stolen = Nanos(0);
        assert_eq!(charged(&stolen, GUEST), [("stalled", 1_200_000)]);
        assert_eq!(charged(&more, METAL), [("interrupts-off", 1_000_001)]);
    }
}
