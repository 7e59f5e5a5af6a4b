//! What is known while a run goes on, for who looks on: summed up only when it is asked for.

use latlab_core::record::explained::Explained;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Between the thread that explains and the one that looks on, neither of which waits for the other
/// to do its work.
#[derive(Default)]
pub(super) struct SoFar {
    wanted: AtomicBool,
    known: Mutex<Option<Explained>>,
}

impl SoFar {
    /// What became known since it was asked for before; asks for what will be known next.
    pub(super) fn ask(&self) -> Option<Explained> {
        self.wanted.store(true, Relaxed);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Says what is known, if that was asked for.
    pub(super) fn answer(&self, known: impl FnOnce() -> Explained) {
        if self.wanted.swap(false, Relaxed) {
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_summed_up_that_nobody_asked_for() {
        let so_far = SoFar::default();
        so_far.answer(|| unreachable!("nobody has asked"));
        assert_eq!(so_far.ask(), None);
        so_far.answer(Explained::default);
        so_far.answer(|| unreachable!("it was answered"));
        assert_eq!(so_far.ask(), Some(Explained::default()));
        assert_eq!(so_far.ask(), None);
    }
}
