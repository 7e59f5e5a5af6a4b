//! The task was throttled.

use super::{Cause, instead, is_idle};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::quota::{QUOTA, Quota};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::time::Nanos;
use latlab_part::part::{About, Describe};
use std::cmp::Ordering;

/// The task was runnable, but the CPU switched or returned to a lower-priority task, because the
/// task's CPU time was used up.
///
/// A CPU quota of the task's control group is recognized by the kernel's functions that throttle a
/// group on a CPU and let it go on (`tg_throttle_down`, `tg_unthrottle_up`), where the kernel lets
/// functions be traced; and from Linux 6.18 on by the state of the task and of its run queue. There a
/// throttled task goes on until it returns to user space, and waits there: its latency ends when it is
/// switched to without that before it.
///
/// Anything else is recognized by a switch to a lower-priority task, or to the idle task, while the
/// task was on the run queue of that CPU; or by an interrupt in user space of such a task: the kernel
/// never returns to user space while a reschedule is pending. On bare metal and in the laboratory an interrupt of
/// the idle task shows the same; the host of a virtual machine may deliver one before the idle task
/// has looked. What used the time up is the fair server, which is the SCHED_DEADLINE server of
/// SCHED_OTHER tasks since Linux 6.12; the limit on all real-time tasks of a CPU
/// (`kernel.sched_rt_runtime_us`), which later kernels have with `CONFIG_RT_GROUP_SCHED`; the
/// budget of a SCHED_DEADLINE task; or the bandwidth of a control group
/// (Documentation/scheduler/sched-rt-group.rst, sched-deadline.rst, sched-bwc.rst).
#[derive(Debug, clap::Args)]
pub(super) struct Throttled;

impl Describe for Throttled {
    const ABOUT: About =
        About { name: "throttled", summary: "the task was throttled: its CPU time was used up" };
}

impl Cause for Throttled {
    fn claim(segment: &Segment, window: &Window, on: &Circumstances) -> Option<Culprit> {
        if segment.is_without_quota(window) {
            let quota = window.quota.as_ref().map_or(QUOTA.to_owned(), Quota::to_string);
            return Some(Culprit { quota: Some(quota), ..Culprit::default() });
        }
        let (task, order) = instead(segment, window)?;
        let passed_over = segment.phase == Phase::Runnable
            && order == Ordering::Greater
            && (window.was_passed_over(segment)
                || window.was_left_waiting(segment)
                || !on.hypervisor
                    && !window.lacks_interrupts
                    && stays_idle(segment)
                    && window.was_left_idle(segment));
        passed_over.then_some(Culprit { task: Some(task), ..Culprit::default() })
    }
}

/// Whether the CPU stays idle for longer than the idle task takes to look whether another one is to run. The
/// next interrupt may come before that.
fn stays_idle(segment: &Segment) -> bool {
    /// Chosen, not measured: such moments took about 2 us in the laboratory.
    const LOOK: Nanos = Nanos::from_micros(5);
    is_idle(segment) && segment.length() > LOOK
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;
    use latlab_core::explain::quota::{QUOTA, Quota};

    fn passed_over(next: u32) -> Window {
        scene(&[
            (20_200, STRESS, EventKind::Queued { pid: OURS, cpu: 0 }),
            (21_000, URGENT, EventKind::Switch { next: task(next), preempted: true }),
        ])
    }

    #[test]
    fn switch_to_lower_priority_task_is_charged_to_throttling() {
        for next in [STRESS, IDLE] {
            let window = passed_over(next);
            assert!(charged(&window, METAL).contains(&("throttled", 9_000)));
            assert_eq!(blamed(&window, METAL, "throttled").task, Some(task(next)));
        }
    }

    /// Group 7 is throttled from 15 000 to 26 000, whatever runs meanwhile.
    fn in_throttled_group(next: u32) -> Window {
        let mut window = scene(&[
            (15_000, STRESS, EventKind::Throttled { group: 7 }),
            (16_000, STRESS, EventKind::Throttled { group: 9 }),
            (17_000, STRESS, EventKind::Unthrottled { group: 9 }),
            (22_000, STRESS, EventKind::Switch { next: task(next), preempted: true }),
            (26_000, next, EventKind::Unthrottled { group: 7 }),
        ]);
        (window.due, window.expiry, window.task.prio) = (window.waking, window.waking, 120);
        window.group = 7;
        window
    }

    #[test]
    fn wait_for_quota_is_charged_to_it_and_the_rest_to_what_runs() {
        for next in [IDLE, PEER, STRESS] {
            let window = in_throttled_group(next);
            assert!(window.meets_quota());
            assert_eq!(charged(&window, METAL)[0], ("throttled", 6_000));
            // A CPU that is idle then passes the task over for another reason.
            assert!(next == IDLE || charged(&window, METAL)[1].0 != "throttled");
            let quota = |window: &Window| blamed(window, METAL, "throttled").quota;
            assert_eq!(quota(&window).as_deref(), Some(QUOTA));
            let known = Quota {
                group: "/sys/fs/cgroup/a".to_owned(),
                runtime: Nanos(2_000_000),
                period: Nanos(9_000_000),
            };
            let window = Window { quota: Some(known.clone()), ..window };
            assert_eq!(quota(&window), Some(known.to_string()));
        }
    }

    #[test]
    fn group_throttled_since_before_the_first_event_is_known_by_its_end() {
        let mut window = in_throttled_group(PEER);
        window.events.remove(0);
        assert_eq!(charged(&window, METAL)[0], ("throttled", 6_000));
        window.events.retain(|event| event.kind != EventKind::Unthrottled { group: 7 });
        assert!(!window.meets_quota());
        assert!(charged(&window, METAL).iter().all(|(cause, _)| *cause != "throttled"));
    }

    #[test]
    fn group_stays_throttled_until_both_quotas_above_it_have_time() {
        let mut window = in_throttled_group(PEER);
        let second = EventKind::Throttled { group: 7 };
        window.events.insert(1, Event { kind: second, ..window.events[0] });
        assert_eq!(charged(&window, METAL)[0], ("throttled", 10_000));
    }

    #[test]
    fn quota_of_another_group_is_not_to_blame() {
        for group in [0, 8] {
            let window = Window { group, ..in_throttled_group(PEER) };
            assert!(!window.meets_quota());
            assert!(charged(&window, METAL).iter().all(|(cause, _)| *cause != "throttled"));
        }
    }

    /// The task is woken while the deadline server of SCHED_OTHER tasks has the CPU.
    fn left_waiting(context: InterruptedContext) -> Window {
        scene(&[
            (10_200, STRESS, timer_upon(PROGRAM)),
            (20_500, STRESS, EventKind::InterruptEnd),
            (27_000, STRESS, timer_upon(context)),
            (28_000, STRESS, EventKind::InterruptEnd),
        ])
    }

    #[test]
    fn return_to_lower_priority_user_space_is_charged_to_throttling() {
        let charges = charged(&left_waiting(PROGRAM), METAL);
        let ends = [("throttled", 6_500), ("interrupt", 1_000), ("dispatch", 3_000)];
        assert_eq!(charges[charges.len() - 3..], ends);
        assert!(
            !charged(&left_waiting(KERNEL), METAL).iter().any(|(cause, _)| *cause == "throttled")
        );
    }

    /// The idle CPU takes the interrupt that wakes the task, and stays idle until another comes.
    #[test]
    fn idle_cpu_that_stays_idle_is_charged_to_throttling_except_in_virtual_machine() {
        let window = scene(&[
            (18_000, IDLE, timer_upon(KERNEL)),
            (20_500, IDLE, EventKind::InterruptEnd),
            (27_000, IDLE, timer_upon(KERNEL)),
            (28_000, IDLE, EventKind::InterruptEnd),
        ]);
        let ends = [("throttled", 6_500), ("interrupt", 1_000), ("idle-exit", 2_000)];
        let charges = charged(&window, METAL);
        let after = charges.iter().position(|(cause, _)| *cause == "throttled");
        assert_eq!(charges[after.expect("it is throttled")..][..3], ends);
        assert!(!charged(&window, GUEST).iter().any(|(cause, _)| *cause == "throttled"));
    }

    /// The deadline server's task goes to sleep after the last interrupt, without another one.
    #[test]
    fn throttling_after_the_last_interrupt_lasts_until_the_switch() {
        let mut window = scene(&[
            (10_200, STRESS, timer_upon(PROGRAM)),
            (20_500, STRESS, EventKind::InterruptEnd),
            (27_000, STRESS, timer_upon(PROGRAM)),
            (28_000, STRESS, EventKind::InterruptEnd),
        ]);
        let ends = |window: &Window| charged(window, METAL).into_iter().rev().nth(1);
        assert_eq!(ends(&window), Some(("interrupt", 1_000)));
        let last = window.events.len() - 1;
        (window.events[last].at, window.switched, window.ran) =
            (Nanos(48_000), Nanos(48_000), Nanos(49_000));
        assert_eq!(ends(&window), Some(("throttled", 20_000)));
    }

    /// An ordinary task with a worse nice value has the CPU next.
    #[test]
    fn turn_of_another_ordinary_task_is_no_throttling() {
        let mut window = scene(&[
            (18_000, IDLE, timer_upon(KERNEL)),
            (20_500, IDLE, EventKind::InterruptEnd),
            (22_600, IDLE, EventKind::Switch { next: task(STRESS), preempted: false }),
            (27_000, STRESS, timer_upon(PROGRAM)),
            (28_000, STRESS, EventKind::InterruptEnd),
        ]);
        window.task.prio = 110;
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "throttled"));
    }

    /// Another interrupt comes at once, before the idle task has looked.
    #[test]
    fn idle_cpu_between_two_interrupts_is_not_throttled() {
        let window = scene(&[
            (18_000, IDLE, timer_upon(KERNEL)),
            (20_500, IDLE, EventKind::InterruptEnd),
            (22_400, IDLE, timer_upon(KERNEL)),
            (23_000, IDLE, EventKind::InterruptEnd),
        ]);
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "throttled"));
    }

    /// A task of higher priority runs first, in user mode.
    #[test]
    fn interrupt_of_higher_priority_task_is_no_evidence_of_throttling() {
        let window = scene(&[
            (10_200, STRESS, timer_upon(KERNEL)),
            (20_500, STRESS, EventKind::InterruptEnd),
            (24_000, STRESS, EventKind::Switch { next: task(URGENT), preempted: true }),
            (27_000, URGENT, timer_upon(PROGRAM)),
            (28_000, URGENT, EventKind::InterruptEnd),
        ]);
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "throttled"));
    }

    #[test]
    fn reschedule_ipi_of_waker_is_no_evidence_of_throttling() {
        let call =
            EventKind::Interrupt { line: Line::Reschedule, context: InterruptedContext::default() };
        let mut window = scene(&[
            (20_100, STRESS, EventKind::Queued { pid: OURS, cpu: 0 }),
            (24_000, STRESS, call),
            (25_000, STRESS, EventKind::InterruptEnd),
        ]);
        window.waker_cpu = 1;
        assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "throttled"));
    }

    #[test]
    fn switch_before_queueing_or_to_higher_priority_is_no_throttling() {
        let mut before = passed_over(STRESS);
        before.events[0].at = Nanos(21_500);
        for window in [before, passed_over(URGENT)] {
            assert!(!charged(&window, METAL).iter().any(|(cause, _)| *cause == "throttled"));
        }
    }
}
