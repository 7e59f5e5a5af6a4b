//! Mutexes of the C library, with and without priority inheritance
//! (`pthread_mutexattr_setprotocol(3)`).

use latlab_core::time::Nanos;
use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The effect of a waiting higher-priority task on the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Nothing.
    None,
    /// It inherits that priority until it unlocks the mutex (`PTHREAD_PRIO_INHERIT`).
    Inherit,
}

/// `pthread.h`; the libc crate lacks it for Linux.
const PTHREAD_PRIO_INHERIT: libc::c_int = 1;

/// A mutex for the threads of this process.
#[derive(Debug)]
pub struct Mutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: several threads may use a mutex at once; only [`Held`] belongs to one of them.
unsafe impl Sync for Mutex {}

/// A locked mutex. Dropping it unlocks the mutex. It can't be sent to another thread.
#[derive(Debug)]
pub struct Held<'a> {
    mutex: &'a Mutex,
    of_one_thread: PhantomData<*const ()>,
}

impl Mutex {
    /// A mutex with this protocol. `Unsupported` where the kernel has no priority inheritance.
    pub fn new(protocol: Protocol) -> io::Result<Mutex> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: `attributes` is valid to write to.
        done(unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) })?;
        if protocol == Protocol::Inherit {
            let inherit = PTHREAD_PRIO_INHERIT;
            // SAFETY: the attributes were initialised.
            done(unsafe { libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), inherit) })?;
        }
        let mutex = Mutex(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        // SAFETY: the memory does not move; the attributes were initialised.
        done(unsafe { libc::pthread_mutex_init(mutex.0.get(), attributes.as_ptr()) })?;
        Ok(mutex)
    }

    /// Locks it, and waits for it at most until this wall-clock time
    /// ([`crate::clock::wall_clock`]): `TimedOut`. There is a limit because signals do not end the
    /// wait.
    #[inline]
    pub fn lock_until(&self, limit: Nanos) -> io::Result<Held<'_>> {
        let limit = crate::clock::timespec(limit);
        // SAFETY: the mutex was initialised, and lives as long as self; the time is valid.
        done(unsafe { libc::pthread_mutex_timedlock(self.0.get(), &raw const limit) })?;
        Ok(Held { mutex: self, of_one_thread: PhantomData })
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the calling thread has locked it: `Held` can't be sent to another thread.
        unsafe { libc::pthread_mutex_unlock(self.mutex.0.get()) };
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // SAFETY: nobody holds it or waits for it: that would take a reference to self.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// The result of a call that returns an error number.
#[inline]
fn done(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn mutex_wait_ends_at_the_limit_or_when_it_is_unlocked() {
        for protocol in [Protocol::None, Protocol::Inherit] {
            let mutex = Mutex::new(protocol).unwrap();
            let soon = || clock::wall_clock() + Nanos::from_millis(20);
            let held = mutex.lock_until(soon()).unwrap();
            let other = || mutex.lock_until(soon()).map(drop).map_err(|error| error.kind());
            let refused = std::thread::scope(|scope| scope.spawn(other).join().unwrap());
            assert_eq!(refused, Err(io::ErrorKind::TimedOut), "{protocol:?}");
            drop(held);
            std::thread::scope(|scope| scope.spawn(other).join().unwrap()).unwrap();
        }
    }
}
