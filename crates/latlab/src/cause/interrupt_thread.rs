//! The thread of an interrupt was to wake the task.

use super::Cause;
use crate::registry::About;
use latlab_core::explain::charge::{Circumstances, Who};
use latlab_core::explain::stretch::{Phase, Stretch};
use latlab_core::explain::{Task, What, Window};
use latlab_core::time::Nanos;

/// The interrupt came, but a thread handles it, and the thread wakes the task.
///
/// Recognized by the name of the waker (`irq/…`, or ksoftirqd and ktimers, which run the softirqs
/// of real-time kernels), from where the thread is woken itself to where it wakes the task
/// (Documentation/core-api/genericirq.rst, threaded handlers; `threadirqs` in
/// Documentation/admin-guide/kernel-parameters.txt). Softirqs that run in it are charged as such.
#[derive(Debug, clap::Args)]
pub(super) struct InterruptThread;

impl Cause for InterruptThread {
    const ABOUT: About = About {
        name: "interrupt-thread",
        summary: "the thread of an interrupt was to wake the task",
    };

    fn claim(stretch: &Stretch, window: &Window, _: &Circumstances) -> Option<Who> {
        let thread = window.waker;
        let chain = stretch.phase == Phase::Due
            && stretch.doing.interrupt.is_none()
            && handles_interrupts(thread)
            && window.woken_by().is_none()
            && stretch.from >= woken(thread, window);
        chain.then_some(Who { task: Some(thread), ..Who::default() })
    }
}

fn handles_interrupts(task: Task) -> bool {
    let name = task.comm.to_string();
    ["irq/", "ksoftirqd/", "ktimers/"].iter().any(|prefix| name.starts_with(prefix))
}

/// When the thread was woken itself, or began to run; 0 if that was before all that was seen.
fn woken(thread: Task, window: &Window) -> Nanos {
    let until = window.before_waking().iter().take_while(|event| event.at <= window.waking);
    let begins = until.filter(|event| match event.what {
        What::Waking { task, .. } => task.pid == thread.pid,
        _ => false,
    });
    begins.map(|event| event.at).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;

    #[test]
    fn the_chain_begins_where_the_thread_is_woken() {
        let mut window = scene(&[
            (10_400, STRESS, What::Interrupt { line: Line::Device(24), upon: PROGRAM }),
            (11_000, STRESS, What::Waking { task: task(THREAD), cpu: 0 }),
            (12_000, STRESS, What::InterruptEnd),
            (15_000, STRESS, What::Switch { next: task(THREAD), preempted: true }),
        ]);
        window.waker = task(THREAD);
        let charges = charged(&window, METAL);
        assert_eq!(charges[..2], [("interrupt", 2_000), ("interrupt-thread", 8_000)]);
        assert_eq!(blamed(&window, METAL, "interrupt-thread").task, Some(task(THREAD)));
        window.waker = task(STRESS);
        assert_eq!(explain(&window, &METAL).unexplained, Nanos(8_000));
    }
}
