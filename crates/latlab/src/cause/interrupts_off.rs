//! The kernel had interrupts off.

use super::{Cause, DELIVERY, is_idle};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::time::Nanos;

/// The kernel had interrupts off, so that the one that was to wake the task had to wait.
///
/// Recognized by an interrupt that comes late upon the kernel, and by nothing else: no handler ran
/// meanwhile. To blame are the task and the function upon which the interrupt came, which is where
/// the kernel turned interrupts on again. Less than a microsecond is the way of the interrupt. In
/// a virtual machine it may as well be the host that brings it late: what is later there than a
/// millisecond, for which hardly any kernel has them off, beyond what was surely stolen, is
/// `stalled`. It is what the kernel's irqsoff tracer measures (Documentation/trace/ftrace.rst).
#[derive(Debug, clap::Args)]
pub(super) struct InterruptsOff;

/// What is later than this in a virtual machine is more likely the host's.
const BELIEVABLE: Nanos = Nanos::from_millis(1);

impl Cause for InterruptsOff {
    const ABOUT: About = About { name: "interrupts-off", summary: "the kernel had interrupts off" };

    fn claim(stretch: &Stretch, window: &Window, machine: &Circumstances) -> Option<Who> {
        if is_idle(stretch) || stretch.phase != Phase::Due {
            return None;
        }
        let next = stretch.next_interrupt(window).filter(|next| next.upon.is_kernel())?;
        let (task, stack) = (stretch.doing.task, window.interrupted(next.upon));
        let believable = next.late - next.stolen <= BELIEVABLE;
        let kept_off = next.late >= DELIVERY && (believable || !machine.hypervisor);
        kept_off.then_some(Who { task, stack, ..Who::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn who_had_them_off_is_found_below_the_handler() {
        let mut window = scene(&[(19_000, STRESS, timer_upon(KERNEL))]);
        window.waking_stack = vec![1, 2, KERNEL.ip, 40, 41];
        assert_eq!(charged(&window, METAL)[0], ("interrupts-off", 9_000));
        let who = blamed(&window, METAL, "interrupts-off");
        assert_eq!((who.task, who.stack), (Some(task(STRESS)), vec![KERNEL.ip, 40, 41]));
        window.waking_stack = vec![1, 2];
        assert_eq!(blamed(&window, METAL, "interrupts-off").stack, [KERNEL.ip]);
    }

    #[test]
    fn a_softirq_that_keeps_the_interrupt_off_is_not_just_a_softirq() {
        let window = scene(&[
            (5_000, STRESS, What::Softirq(3)),
            (17_000, STRESS, What::SoftirqEnd),
            (19_000, STRESS, timer_upon(KERNEL)),
        ]);
        assert_eq!(charged(&window, METAL)[0], ("interrupts-off", 9_000));
    }

    #[test]
    fn an_idle_cpu_has_nobody_to_blame_and_a_program_cannot_do_it() {
        let idle = scene(&[(19_000, IDLE, timer_upon(KERNEL))]);
        let program = scene(&[(19_000, STRESS, timer_upon(PROGRAM))]);
        for window in [idle, program] {
            assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "interrupts-off"));
        }
    }

    #[test]
    fn what_a_call_of_another_cpu_came_upon_the_timer_says_that_had_to_wait_as_well() {
        let expired = |upon, again, due| {
            scene(&[
                (18_000, STRESS, CALL),
                (18_500, STRESS, What::InterruptEnd),
                (again, STRESS, timer_upon(upon)),
                (again + 100, STRESS, What::Timer { function: 8, due: Nanos(due) }),
            ])
        };
        let both = |upon, again| expired(upon, again, 18_000);
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
        device.events[2].what = What::Interrupt { line: Line::Device(3), upon: KERNEL };
        assert_ne!(charged(&device, METAL)[0].0, "interrupts-off");
    }

    #[test]
    fn where_the_interrupt_came_is_not_guessed() {
        let window = scene(&[(19_000, STRESS, timer_upon(Upon::default()))]);
        assert_eq!(explain(&window, &METAL).unexplained, Nanos(9_000));
    }

    #[test]
    fn in_a_virtual_machine_more_than_kernels_do_is_not_believed() {
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
        stolen.events[0].what = What::SoftirqEnd;
        stolen.events[1].stolen = Nanos(300_000);
        let expected = [("interrupts-off", 900_000), ("host", 300_000)];
        assert_eq!(charged(&stolen, GUEST), expected);
        // The same, stolen before an event that may tell of what was before the task was due.
        let before =
            Event { at: stolen.due + Nanos(1), stolen: Nanos(300_000), ..stolen.events[0] };
        stolen.events.insert(1, before);
        stolen.events[2].stolen = Nanos(0);
        assert_eq!(charged(&stolen, GUEST), [("stalled", 1_200_000)]);
        assert_eq!(charged(&more, METAL), [("interrupts-off", 1_000_001)]);
    }
}
