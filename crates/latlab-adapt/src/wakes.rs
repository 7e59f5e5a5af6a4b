//! Wake-ups of real-time tasks by IRQ threads, from the BPF program to the decision.

use latlab_bpf::wakers::{WakerCounters, Wakers};
use latlab_mechanism::{RealTimeTask, Wake};
use latlab_sys::sched;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};

/// Wake-ups that were reported and not decided upon yet.
#[derive(Debug, Default)]
pub(super) struct PendingWakes {
    wakers: Option<Wakers>,
    pending: Vec<Wake>,
    /// Wake-ups of running tasks that were decided upon, whatever the decision.
    decided: BTreeSet<Wake>,
}

/// Result of receiving wake-ups, by the most important of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// No wake-up.
    None,
    /// Only wake-ups that a mechanism knows.
    Known,
    /// Others as well, all of them pending or decided upon before.
    Repeated,
    /// At least one that was not reported before.
    New,
}

impl PendingWakes {
    /// Wake-ups that `wakers` reports; there are none without it.
    pub(super) fn new(wakers: Option<Wakers>) -> PendingWakes {
        PendingWakes { wakers, ..PendingWakes::default() }
    }

    /// Adds the reported wake-ups that are not known to the pending ones.
    pub(super) fn receive(&mut self, known: impl Fn(&Wake) -> bool) -> Received {
        let mut wakes = self.wakers.as_mut().map(Wakers::take).unwrap_or_default();
        if wakes.is_empty() {
            return Received::None;
        }
        // The adaptation thread itself has a real-time policy.
        let own_thread = sched::thread_id();
        wakes.retain(|wake| wake.task != own_thread && !known(wake));
        let is_new = |wake: &Wake| !self.decided.contains(wake) && !self.pending.contains(wake);
        let received = if wakes.is_empty() {
            Received::Known
        } else if wakes.iter().any(is_new) {
            Received::New
        } else {
            Received::Repeated
        };
        self.pending.extend(wakes);
        received
    }

    pub(super) fn pending(&self) -> &[Wake] {
        &self.pending
    }

    /// Takes the pending wake-ups that are ready to be decided upon.
    pub(super) fn take_ready(&mut self, is_ready: impl Fn(&Wake) -> bool) -> Vec<Wake> {
        let (ready, pending) = std::mem::take(&mut self.pending).into_iter().partition(is_ready);
        self.pending = pending;
        ready
    }

    /// Notes that these wake-ups are decided upon, as long as their tasks run.
    pub(super) fn mark_decided(&mut self, wakes: &[Wake], tasks: &[RealTimeTask]) {
        self.decided.extend(wakes);
        self.decided.retain(|wake| tasks.iter().any(|task| task.id == wake.task));
    }

    /// The descriptor that can be read when wake-ups are reported.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.wakers.as_ref().map(AsFd::as_fd)
    }

    /// Counts of wake-ups by lower-priority tasks, which another thread may read.
    pub(super) fn meter(&self) -> Option<WakerCounters> {
        self.wakers.as_ref().map(Wakers::counters)
    }
}
