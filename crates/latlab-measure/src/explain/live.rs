//! The explanations so far, computed only when they are requested.

use latlab_core::record::explained::Explanations;
use latlab_part::failure::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Passes the explanations so far from the explaining thread to the monitor thread. Neither waits
/// for the other.
#[derive(Default)]
pub(super) struct LiveSummary {
    requested: AtomicBool,
    latest: Mutex<Option<Explanations>>,
}

impl LiveSummary {
    /// Takes the explanations that were requested before, and requests the next ones.
    pub(super) fn take_and_request(&self) -> Option<Explanations> {
        self.requested.store(true, Relaxed);
        lock(&self.latest).take()
    }

    /// Computes the explanations if they were requested.
    pub(super) fn publish(&self, summarize: impl FnOnce() -> Explanations) {
        if self.requested.swap(false, Relaxed) {
            *lock(&self.latest) = Some(summarize());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_computed_only_on_request() {
        let live = LiveSummary::default();
        live.publish(|| unreachable!("not requested"));
        assert_eq!(live.take_and_request(), None);
        live.publish(Explanations::default);
        live.publish(|| unreachable!("already published"));
        assert_eq!(live.take_and_request(), Some(Explanations::default()));
        assert_eq!(live.take_and_request(), None);
    }
}
