//! Locks whose data stays valid when a thread panics.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if a thread has panicked while it held the lock. Only for data that is valid
/// after each single change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// The value of a locking operation, even if a thread has panicked while it held the lock.
pub(crate) fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
