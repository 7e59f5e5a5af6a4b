//! The task waited for a lock of the kernel.

use super::Cause;
use latlab_core::explain::Window;
use latlab_core::explain::charge::{Circumstances, Culprit};
use latlab_core::explain::segment::Segment;
use latlab_part::part::{About, Describe};

/// The task waited for a lock of the kernel: a mutex, a semaphore, a spinlock.
///
/// Recognized by `lock:contention_begin` of the task, which kernels have from 5.19 on. The wait
/// ends when the task is woken from it and has the CPU, or gets the lock by spinning
/// (`lock:contention_end`); time of tasks that preempt it, or that have as high a priority when it
/// is woken, does not count. The lock is named by its symbol where it is static data of the kernel
/// or of a module, or as the `mmap_lock` of a process; otherwise the function that called for it
/// tells which one it is. The task that has the lock is read from the lock itself when the wait
/// begins, with its priority before it inherits one. Spinlocks (other than on `PREEMPT_RT`),
/// semaphores and readers on `PREEMPT_RT` keep none; of several readers it is the last that got the
/// lock. The kernel reports a wait for a semaphore for readers and writers only when the task
/// ceases to spin. Only samples of probes have such waits: the latency of other tasks ends at the
/// switch to them.
#[derive(Debug, clap::Args)]
pub(super) struct Lock;

impl Describe for Lock {
    const ABOUT: About = About {
        name: "lock",
        summary: "the task waited for a lock of the kernel; names its holder",
    };
}

impl Cause for Lock {
    fn claim(segment: &Segment, window: &Window, _: &Circumstances) -> Option<Culprit> {
        Some(Culprit::of_lock(window.lock_wait(segment)?))
    }
}

#[cfg(test)]
mod tests {
    use crate::cause::tests::*;
    use latlab_core::explain::lock::{LockAddress, LockKind, LockWait, Owner};

    fn wait() -> LockWait {
        let owner = Owner { task: task(STRESS), cpu: 0, is_reader: false };
        LockWait { place: LockAddress::At(64), kind: LockKind::Mutex, owner: Some(owner) }
    }

    /// A wait from 30 500 on, during a page fault; the holder lets go at 40 000, after a task of
    /// higher priority, which goes on until 42 000.
    fn scene_with_wait() -> Window {
        let mut window = scene(&[
            (30_400, OURS, EventKind::PageFault { address: 4_096 }),
            (30_500, OURS, EventKind::LockWait(wait())),
            (30_500, OURS, EventKind::Callers([5, 6, 0, 0, 0])),
            (31_000, OURS, EventKind::Switch { next: task(STRESS), preempted: false }),
            (40_000, STRESS, EventKind::LockReleased { pid: OURS }),
            (40_000, STRESS, EventKind::Switch { next: task(URGENT), preempted: true }),
            (42_000, URGENT, EventKind::Switch { next: task(OURS), preempted: false }),
            (42_500, OURS, EventKind::LockTaken),
        ]);
        (window.ran, window.out) = (Nanos(43_000), Nanos(50_000));
        window
    }

    #[test]
    fn wait_is_charged_to_the_lock_until_the_task_is_woken() {
        let charges = charged(&scene_with_wait(), METAL);
        let expected = [
            ("dispatch", 400),
            ("page-fault", 100),
            ("lock", 9_500),
            ("higher-priority", 2_000),
            ("page-fault", 1_000),
        ];
        assert_eq!(charges[charges.len() - 5..], expected);
        let culprit = blamed(&scene_with_wait(), METAL, "lock");
        assert_eq!((culprit.lock, culprit.stack), (Some(wait()), vec![5, 6]));
    }

    #[test]
    fn task_that_runs_after_the_release_is_charged_itself() {
        let mut window = scene_with_wait();
        window.events.retain(|event| !matches!(event.kind, EventKind::PageFault { .. }));
        let charges = charged(&window, METAL);
        let expected =
            [("dispatch", 500), ("lock", 9_500), ("higher-priority", 2_000), ("dispatch", 1_000)];
        assert_eq!(charges[charges.len() - 4..], expected);
    }
}
