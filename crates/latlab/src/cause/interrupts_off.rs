//! The kernel had interrupts off.

use super::{Cause, DELIVERY, is_idle};
use crate::registry::About;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};

/// The kernel had interrupts off, so that the one that was to wake the task had to wait.
///
/// Recognized by an interrupt that comes late upon the kernel, and by nothing else: no handler ran
/// meanwhile. To blame are the task and the function upon which the interrupt came, which is where
/// the kernel turned interrupts on again. Less than a microsecond is the way of the interrupt. It is
/// what the kernel's irqsoff tracer measures (Documentation/trace/ftrace.rst).
#[derive(Debug, clap::Args)]
pub(super) struct InterruptsOff;

impl Cause for InterruptsOff {
    const ABOUT: About = About { name: "interrupts-off", summary: "the kernel had interrupts off" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        if is_idle(stretch) || stretch.phase != Phase::Due {
            return None;
        }
        let next = stretch.next_interrupt(window).filter(|next| next.upon.is_kernel())?;
        let (task, stack) = (stretch.doing.task, window.interrupted(next.upon));
        (next.late >= DELIVERY).then_some(Who { task, stack, ..Who::default() })
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
    fn where_the_interrupt_came_is_not_guessed() {
        let window = scene(&[(19_000, STRESS, timer_upon(Upon::default()))]);
        assert_eq!(explain(&window, &METAL).unexplained, Nanos(9_000));
    }
}
