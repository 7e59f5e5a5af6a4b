//! The kernel could not be preempted.

use super::{Cause, instead};
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{Task, Window};
use latlab_part::part::{About, Describe};
use std::cmp::Ordering;

/// Kernel code ran for a lower-priority task, and could not be preempted. Under preempt=none and
/// preempt=voluntary it ran to its next scheduling point.
///
/// Recognized by a lower-priority task that keeps the CPU in kernel context after the task was
/// woken: user space can be preempted anywhere. It was in kernel context if the last interrupt came
/// there, or if it woke the task itself, on the same CPU. If the context of the last interrupt is
/// not known, it was if more than 10 us passed from the end of that interrupt to the switch, not
/// counting interrupts, softirqs and stolen time: from user space the kernel switches at once. In the
/// trace of another tool, all interrupts and softirqs have to be events. The
/// culprits are that task and the function in which it was switched out; or, if that was only on
/// its return from the kernel, the function that the waking interrupt came in. It is the
/// non-preemptible section of Abeni et al. (RTAS 2002), and what the kernel's preemptoff tracer
/// measures (Documentation/trace/ftrace.rst).
#[derive(Debug, clap::Args)]
pub(super) struct NonPreemptible;

impl Describe for NonPreemptible {
    const ABOUT: About = About {
        name: "non-preemptible",
        summary: "non-preemptible section of a lower-priority task in the kernel",
    };
}

impl Cause for NonPreemptible {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let (task, order) = instead(segment, window)?;
        let context = window.last_interrupt(segment);
        let in_kernel = match context.filter(|context| context.ip != 0) {
            Some(context) => context.is_kernel(),
            // From user space it goes straight to the scheduler. If that takes longer, it was in
            // the kernel.
            None => {
                is_waker(task, segment, window)
                    || context.is_some() && window.is_slow_to_switch(segment)
            }
        };
        let waits = segment.phase == Phase::Runnable && order == Ordering::Greater;
        if !waits || !in_kernel || task.is_idle() || window.lacks_interrupts {
            return None;
        }
        let here = segment.cpu == Some(window.waker_cpu) && window.waker.pid == task.pid;
        let interrupted = context.filter(|_| here).map(|context| window.interrupted(context));
        let interrupted = interrupted.unwrap_or_default();
        let is_last = segment.cpu == Some(window.cpu) && window.switch_pid == task.pid;
        let switched_out = Some(&window.switch_stack).filter(|_| is_last);
        let section =
            switched_out.filter(|out| !out.is_empty() && !is_returning(out, &interrupted));
        let stack = section.cloned().unwrap_or(interrupted);
        Some(Culprit { task: Some(task), stack, ..Culprit::default() })
    }
}

/// Whether `task` woke the explained task on the same CPU, so that it was in the kernel.
fn is_waker(task: Task, segment: &Segment, window: &Window) -> bool {
    let here = segment.cpu == Some(window.waker_cpu) && window.was_woken_by_task();
    here && task.pid == window.waker.pid
}

/// Whether a task was switched out on its return to user space, after the system call that was
/// interrupted: the two stacks have only the entry into the kernel in common. A kernel without
/// preemption runs until there.
fn is_returning(switched_out: &[u64], interrupted: &[u64]) -> bool {
    let both = switched_out.iter().rev().zip(interrupted.iter().rev());
    interrupted.len() > 1 && both.take_while(|(one, other)| one == other).count() <= 1
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn culprit_is_lower_priority_task_and_function_in_which_it_was_switched_out() {
        let mut window = scene(&[(10_200, STRESS, timer_upon(KERNEL)), ENDS_OF_STRESS]);
        window.waking_stack = vec![1, KERNEL.ip, 40, 41, 42];
        assert!(charged(&window, METAL).contains(&("non-preemptible", 9_000)));
        let culprit = |window: &Window| blamed(window, METAL, "non-preemptible");
        assert_eq!(
            (culprit(&window).task, culprit(&window).stack),
            (Some(task(STRESS)), vec![KERNEL.ip, 40, 41, 42])
        );
        (window.switch_stack, window.switch_pid) = (vec![50, 40, 41, 42], STRESS);
        assert_eq!(culprit(&window).stack, [50, 40, 41, 42]);
        // On its return to user space, the stack says nothing about the section.
        window.switch_stack = vec![50, 51, 42];
        assert_eq!(culprit(&window).stack, [KERNEL.ip, 40, 41, 42]);
        window.waking_stack.clear();
        assert_eq!(culprit(&window).stack, [50, 51, 42]);
    }

    /// A task of higher priority is woken too, and runs before.
    #[test]
    fn stack_of_another_task_is_not_blamed() {
        let mut window = scene(&[
            (10_200, STRESS, timer_upon(KERNEL)),
            ENDS_OF_STRESS,
            (25_000, STRESS, EventKind::Switch { next: task(URGENT), preempted: true }),
        ]);
        window.waker = task(STRESS);
        (window.switch_stack, window.switch_pid) = (vec![50, 40, 41, 42], URGENT);
        let stack = |window: &Window| blamed(window, METAL, "non-preemptible").stack;
        assert_eq!(stack(&window), [KERNEL.ip]);
        window.switch_pid = STRESS;
        assert_eq!(stack(&window), [50, 40, 41, 42]);
    }

    fn is_claimed(window: &Window) -> bool {
        charged(window, METAL).iter().any(|(cause, _)| *cause == "non-preemptible")
    }

    #[test]
    fn interrupt_of_unknown_context_is_not_charged() {
        let call =
            EventKind::Interrupt { line: Line::Reschedule, context: InterruptedContext::default() };
        let mut window = scene(&[
            (1_000, STRESS, EventKind::SoftirqEnd),
            (22_000, STRESS, call),
            (22_500, STRESS, EventKind::InterruptEnd),
        ]);
        window.waker_cpu = 1;
        (window.due, window.expiry) = (window.waking, window.waking);
        assert!(!is_claimed(&window));
    }

    #[test]
    fn context_of_waking_interrupt_holds_until_switch() {
        let called = |context, call| {
            scene(&[
                (10_200, STRESS, timer_upon(context)),
                ENDS_OF_STRESS,
                (call, STRESS, CALL),
                (call + 500, STRESS, EventKind::InterruptEnd),
            ])
        };
        let window = called(KERNEL, 27_000);
        let ends = [("non-preemptible", 6_000), ("interrupt", 500), ("non-preemptible", 2_500)];
        assert_eq!(charged(&window, METAL)[1..4], ends);
        let charges = charged(&called(PROGRAM, 22_000), METAL);
        assert_eq!(charges[1..], [("dispatch", 1_000), ("interrupt", 500), ("dispatch", 8_500)]);
    }

    #[test]
    fn context_of_interrupt_before_due_time_counts() {
        assert!(is_claimed(&scene(&[(9_000, STRESS, timer_upon(KERNEL)), ENDS_OF_STRESS])));
    }

    #[test]
    fn waker_on_same_cpu_is_in_kernel() {
        let mut window = scene(&[(1_000, STRESS, EventKind::SoftirqEnd)]);
        (window.due, window.expiry) = (window.waking, window.waking);
        assert_eq!(charged(&window, METAL)[0], ("non-preemptible", 10_000));
        window.waker = task(PEER);
        assert!(!is_claimed(&window));
        let unknown =
            scene(&[(19_000, STRESS, timer_upon(InterruptedContext::default())), ENDS_OF_STRESS]);
        assert!(!is_claimed(&unknown));
    }

    #[test]
    fn user_space_is_not_charged() {
        let window = scene(&[(10_200, STRESS, timer_upon(PROGRAM)), ENDS_OF_STRESS]);
        let charges = charged(&window, METAL);
        assert!(!charges.iter().any(|(cause, _)| *cause == "non-preemptible"), "{charges:?}");
    }
}
