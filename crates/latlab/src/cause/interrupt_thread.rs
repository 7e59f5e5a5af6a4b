//! The IRQ thread had not woken the task yet.

use super::Cause;
use crate::part::{About, Describe};
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::{Phase, Segment};
use latlab_core::explain::{EventKind, Task, Window};
use latlab_core::time::Nanos;

/// The interrupt had arrived, but the IRQ thread that handles it had not woken the task yet.
///
/// Recognized by the name of the waker (`irq/…`, or ksoftirqd and ktimers, which run the softirqs
/// of real-time kernels), from the wake-up of that thread until it wakes the task
/// (Documentation/core-api/genericirq.rst, threaded handlers; `threadirqs` in
/// Documentation/admin-guide/kernel-parameters.txt). Softirqs that run in the thread are charged as
/// such.
#[derive(Debug, clap::Args)]
pub(super) struct InterruptThread;

impl Describe for InterruptThread {
    const ABOUT: About = About {
        name: "interrupt-thread",
        summary: "the IRQ thread that wakes the task had not run yet",
    };
}

impl Cause for InterruptThread {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        let thread = window.waker;
        let chain = segment.phase == Phase::Due
            && segment.activity.interrupt.is_none()
            && handles_interrupts(thread)
            && window.woken_by().is_none()
            && segment.from >= woken(thread, window);
        chain.then_some(Culprit { task: Some(thread), ..Culprit::default() })
    }
}

fn handles_interrupts(task: Task) -> bool {
    let name = task.comm.to_string();
    ["irq/", "ksoftirqd/", "ktimers/"].iter().any(|prefix| name.starts_with(prefix))
}

/// Time at which the thread itself was woken; 0 if that was before the first event.
fn woken(thread: Task, window: &Window) -> Nanos {
    let until = window.before_waking().iter().take_while(|event| event.at <= window.waking);
    let begins = until.filter(|event| match event.kind {
        EventKind::Waking { task, .. } => task.pid == thread.pid,
        _ => false,
    });
    begins.map(|event| event.at).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn interrupt_thread_is_charged_from_its_own_wake_up() {
        let mut window = scene(&[
            (10_400, STRESS, EventKind::Interrupt { line: Line::Device(24), context: PROGRAM }),
            (11_000, STRESS, EventKind::Waking { task: task(THREAD), cpu: 0 }),
            (12_000, STRESS, EventKind::InterruptEnd),
            (15_000, STRESS, EventKind::Switch { next: task(THREAD), preempted: true }),
        ]);
        window.waker = task(THREAD);
        let charges = charged(&window, METAL);
        assert_eq!(charges[..2], [("interrupt", 2_000), ("interrupt-thread", 8_000)]);
        assert_eq!(blamed(&window, METAL, "interrupt-thread").task, Some(task(THREAD)));
        window.waker = task(STRESS);
        assert_eq!(explain(&window, &METAL).unexplained, Nanos(8_000));
    }
}
