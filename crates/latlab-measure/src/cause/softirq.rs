//! A softirq ran.

use super::{Cause, instead};
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::Segment;
use latlab_part::part::{About, Describe};
use std::cmp::Ordering;

/// A softirq ran: on top of a task, or in ksoftirqd, the thread that runs softirqs which were left
/// over.
///
/// Recognized by `irq:softirq_entry` and `irq:softirq_exit`, which name the softirq, or by the name
/// of the current task, ksoftirqd, if it has at least the priority of the task
/// (include/linux/interrupt.h; Documentation/core-api/kernel-api.rst). While a softirq runs on top
/// of a task, no other task is scheduled, whatever its priority.
#[derive(Debug, clap::Args)]
pub(super) struct Softirq;

impl Describe for Softirq {
    const ABOUT: About = About { name: "softirq", summary: "a softirq ran, or ksoftirqd" };
}

impl Cause for Softirq {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let activity = &segment.activity;
        if activity.interrupt.is_some() {
            return None;
        }
        if activity.softirq.is_some() {
            return Some(Culprit { softirq: activity.softirq, ..Culprit::default() });
        }
        let (task, order) = instead(segment, window)?;
        let waits = order != Ordering::Greater && task.comm.to_string().starts_with("ksoftirqd/");
        waits.then_some(Culprit { task: Some(task), ..Culprit::default() })
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn softirq_on_top_of_task_is_named_by_number() {
        let window = scene(&[
            (10_200, STRESS, timer_upon(PROGRAM)),
            (21_000, STRESS, EventKind::InterruptEnd),
            (21_000, STRESS, EventKind::Softirq(3)),
            (29_000, STRESS, EventKind::SoftirqEnd),
        ]);
        assert_eq!(charged(&window, METAL)[1], ("softirq", 8_000));
        assert_eq!(blamed(&window, METAL, "softirq").softirq, Some(3));
    }

    #[test]
    fn ksoftirqd_of_lower_priority_is_not_charged() {
        let mut window = scene(&[(1_000, KSOFTIRQD, EventKind::SoftirqEnd)]);
        let has_softirq =
            |window: &Window| charged(window, METAL).iter().any(|(name, _)| *name == "softirq");
        assert!(!has_softirq(&window));
        window.task.prio = 120;
        assert!(has_softirq(&window));
    }
}
