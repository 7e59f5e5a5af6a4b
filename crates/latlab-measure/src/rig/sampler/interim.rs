//! Copies of a sampler's recording so far. The sampler's own thread makes one when the monitor
//! requests it.

use super::recording::Used;
use super::{Recording, Sampler};
use latlab_part::failure::lock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// The latest copy of what a sampler has recorded. All of its memory is allocated at the start.
pub(in crate::rig) struct Interim {
    wanted: AtomicBool,
    /// Empty until the first copy.
    copy: Mutex<Recording>,
}

impl Interim {
    pub(super) fn new(empty: Recording) -> Interim {
        Interim { wanted: AtomicBool::new(false), copy: Mutex::new(empty) }
    }

    /// Asks the sampler for a copy, which it makes before its next period.
    pub(in crate::rig) fn want(&self) {
        self.wanted.store(true, Relaxed);
    }

    /// Whether the sampler has not yet made the copy that was asked for.
    #[inline]
    pub(in crate::rig) fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed)
    }

    /// The latest copy. While it is locked the sampler makes none, and does not wait.
    pub(in crate::rig) fn latest(&self) -> MutexGuard<'_, Recording> {
        lock(&self.copy)
    }
}

impl Sampler<'_> {
    /// Copies what was recorded. It takes some microseconds, once a minute, in which the thread
    /// would sleep, and neither allocates nor waits.
    #[cold]
    pub(super) fn copy(&self) {
        if let Ok(mut copy) = self.interim.copy.try_lock() {
            self.interim.wanted.store(false, Relaxed);
            self.fill(&mut copy, Used::by_thread());
        }
    }
}
