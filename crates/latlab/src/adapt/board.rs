//! What the thread that decides and the thread that answers programs tell each other. The one that
//! decides never waits for the other, which may be kept from the CPU by any real-time task.

use latlab_core::mechanism::Request;
use latlab_core::mechanism::status::Status;
use latlab_sys::{sched, signal};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last word of either side.
#[derive(Debug, Default)]
pub(super) struct Board {
    requests: Mutex<Vec<Request>>,
    status: Mutex<Status>,
    /// The thread that decides, as the kernel numbers it; 0 before there is one.
    deciding: AtomicI32,
}

impl Board {
    /// From now on the calling thread is the one that decides.
    pub(super) fn decide_here(&self) {
        self.deciding.store(sched::thread_id(), Relaxed);
    }

    /// Puts up what processes ask for, and has it looked at now.
    pub(super) fn ask(&self, requests: Vec<Request>) {
        *held(&self.requests) = requests;
        match self.deciding.load(Relaxed) {
            0 => {}
            thread => signal::nudge(thread),
        }
    }

    /// What processes ask for; none if that can't be said at once.
    pub(super) fn requests(&self) -> Option<Vec<Request>> {
        self.requests.try_lock().ok().map(|requests| requests.clone())
    }

    /// Puts up how things stand. Whether that was possible at once.
    pub(super) fn publish(&self, status: &Status) -> bool {
        self.status.try_lock().map(|mut there| there.clone_from(status)).is_ok()
    }

    /// How things stand.
    pub(super) fn status(&self) -> Status {
        held(&self.status).clone()
    }
}

/// Whoever panicked while it had the lock left a whole value.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
