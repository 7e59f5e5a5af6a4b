//! The kernel could not be preempted.

use super::{Cause, instead};
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{Task, Window};
use std::cmp::Ordering;

/// The kernel worked for a less urgent task, and could not be preempted there.
///
/// Recognized by a task of lower priority that keeps the CPU after ours was woken, in the kernel:
/// a program can be preempted anywhere. That it was in the kernel is known where the last interrupt
/// came upon that, or where it woke ours itself, on the same CPU; and where the last interrupt does
/// not say what it came upon, by more than 10 us from its end to the switch, less what interrupts,
/// softirqs and the host took of them: from a program the kernel goes there at once. To blame are
/// that task and the function in which it gave way; or, where it did so only on its way out of the
/// kernel, the one upon which the waking interrupt came. It is the non-preemptable section of Abeni
/// et al. (RTAS 2002), and what the kernel's preemptoff tracer measures
/// (Documentation/trace/ftrace.rst).
#[derive(Debug, clap::Args)]
pub(super) struct NonPreemptable;

impl Cause for NonPreemptable {
    const ABOUT: About =
        About { name: "non-preemptable", summary: "the kernel could not be preempted" };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let (task, order) = instead(stretch, window)?;
        let upon = window.last_interrupt(stretch.from);
        let in_kernel = match upon.filter(|upon| upon.ip != 0) {
            Some(upon) => upon.is_kernel(),
            // From a program it goes straight to the scheduler: what takes longer is the kernel's.
            None => {
                is_waker(task, window) || upon.is_some() && window.is_slow_to_switch(stretch.from)
            }
        };
        let waits = stretch.phase == Phase::Runnable && order == Ordering::Greater;
        if !waits || !in_kernel || task.is_idle() {
            return None;
        }
        let here = upon.filter(|_| window.waker_cpu == window.cpu);
        let at_work = here.map(|upon| window.interrupted(upon)).unwrap_or_default();
        let gave_way = &window.switch_stack;
        let stack = if gave_way.is_empty() || is_on_its_way_out(gave_way, &at_work) {
            at_work
        } else {
            gave_way.clone()
        };
        Some(Who { task: Some(task), stack, ..Who::default() })
    }
}

/// Whether this task woke ours on the very CPU: then it was in the kernel.
fn is_waker(task: Task, window: &Window) -> bool {
    let here = window.waker_cpu == window.cpu && window.was_woken_by_task();
    here && task.pid == window.waker.pid
}

/// Whether a task that was seen at work had left that call when it gave way: of the two stacks
/// only the entry into the kernel is the same. A kernel without preemption goes on until there.
fn is_on_its_way_out(gave_way: &[u64], at_work: &[u64]) -> bool {
    let both = gave_way.iter().rev().zip(at_work.iter().rev());
    at_work.len() > 1 && both.take_while(|(gave, work)| gave == work).count() <= 1
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn a_lesser_task_in_the_kernel_keeps_the_cpu_where_it_gives_way() {
        let mut window = scene(&[(10_200, STRESS, timer_upon(KERNEL)), ENDS_OF_STRESS]);
        window.waking_stack = vec![1, KERNEL.ip, 40, 41, 42];
        assert!(charged(&window, METAL).contains(&("non-preemptable", 9_000)));
        let who = |window: &Window| blamed(window, METAL, "non-preemptable");
        assert_eq!(
            (who(&window).task, who(&window).stack),
            (Some(task(STRESS)), vec![KERNEL.ip, 40, 41, 42])
        );
        window.switch_stack = vec![50, 40, 41, 42];
        assert_eq!(who(&window).stack, [50, 40, 41, 42]);
        // On its way out of the kernel it does nothing more that tells.
        window.switch_stack = vec![50, 51, 42];
        assert_eq!(who(&window).stack, [KERNEL.ip, 40, 41, 42]);
        window.waking_stack.clear();
        assert_eq!(who(&window).stack, [50, 51, 42]);
    }

    fn is_claimed(window: &Window) -> bool {
        charged(window, METAL).iter().any(|(cause, _)| *cause == "non-preemptable")
    }

    #[test]
    fn whether_a_cpu_that_another_one_calls_was_in_the_kernel_is_not_guessed() {
        let call = What::Interrupt { line: Line::Reschedule, upon: Upon::default() };
        let mut window = scene(&[
            (1_000, STRESS, What::SoftirqEnd),
            (22_000, STRESS, call),
            (22_500, STRESS, What::InterruptEnd),
        ]);
        window.waker_cpu = 1;
        (window.due, window.expiry) = (window.waking, window.waking);
        assert!(!is_claimed(&window));
    }

    #[test]
    fn what_the_waking_interrupt_came_upon_holds_until_the_switch() {
        let called = |upon, call| {
            scene(&[
                (10_200, STRESS, timer_upon(upon)),
                ENDS_OF_STRESS,
                (call, STRESS, CALL),
                (call + 500, STRESS, What::InterruptEnd),
            ])
        };
        let window = called(KERNEL, 27_000);
        let ends = [("non-preemptable", 6_000), ("interrupt", 500), ("non-preemptable", 2_500)];
        assert_eq!(charged(&window, METAL)[1..4], ends);
        let charges = charged(&called(PROGRAM, 22_000), METAL);
        assert_eq!(charges[1..], [("dispatch", 1_000), ("interrupt", 500), ("dispatch", 8_500)]);
    }

    #[test]
    fn an_interrupt_that_began_before_ours_was_due_tells_as_well() {
        assert!(is_claimed(&scene(&[(9_000, STRESS, timer_upon(KERNEL)), ENDS_OF_STRESS])));
    }

    #[test]
    fn a_task_that_wakes_ours_is_in_the_kernel() {
        let mut window = scene(&[(1_000, STRESS, What::SoftirqEnd)]);
        (window.due, window.expiry) = (window.waking, window.waking);
        assert_eq!(charged(&window, METAL)[0], ("non-preemptable", 10_000));
        window.waker = task(PEER);
        assert!(!is_claimed(&window));
        let unknown = scene(&[(19_000, STRESS, timer_upon(Upon::default())), ENDS_OF_STRESS]);
        assert!(!is_claimed(&unknown));
    }

    #[test]
    fn a_program_can_be_preempted_anywhere() {
        let window = scene(&[(10_200, STRESS, timer_upon(PROGRAM)), ENDS_OF_STRESS]);
        let charges = charged(&window, METAL);
        assert!(!charges.iter().any(|(cause, _)| *cause == "non-preemptable"), "{charges:?}");
    }
}
