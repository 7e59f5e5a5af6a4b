//! The summary for the live view, computed only when it is requested.

use crate::lock::lock;
use latlab_core::record::explained::Explained;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Passes summaries from the thread that explains to the live view. Neither waits for the other.
#[derive(Default)]
pub(super) struct LiveSummary {
    requested: AtomicBool,
    latest: Mutex<Option<Explained>>,
}

impl LiveSummary {
    /// Takes the summary that was requested before, and requests the next one.
    pub(super) fn take_and_request(&self) -> Option<Explained> {
        self.requested.store(true, Relaxed);
        lock(&self.latest).take()
    }

    /// Computes the summary if it was requested.
    pub(super) fn publish(&self, summarize: impl FnOnce() -> Explained) {
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
        live.publish(Explained::default);
        live.publish(|| unreachable!("already published"));
        assert_eq!(live.take_and_request(), Some(Explained::default()));
        assert_eq!(live.take_and_request(), None);
    }
}
