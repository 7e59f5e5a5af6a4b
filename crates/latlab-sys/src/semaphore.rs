//! Semaphores between the threads of this process: System V (`semop(2)`), POSIX (`sem_wait(3)`),
//! and a number with a futex (`futex(2)`).
//!
//! Probes measure them, so they go through the C library; rustix has only the futex.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A semaphore. Dropping it removes it.
#[derive(Debug)]
pub struct Semaphore(SemaphoreKind);

#[derive(Debug)]
enum SemaphoreKind {
    SystemV(libc::c_int),
    Posix(Box<UnsafeCell<MaybeUninit<libc::sem_t>>>),
    Futex(AtomicU32),
}

// SAFETY: several threads may use a semaphore at once; the C library's type has no owner.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// A System V semaphore with this value. The whole IPC namespace sees it, and it stays there if
    /// this process is killed: [`crate::namespace::unshare_ipc`] comes first.
    pub fn system_v(value: u16) -> io::Result<Semaphore> {
        // SAFETY: semget takes no pointers.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | 0o600) };
        let semaphore = Semaphore(SemaphoreKind::SystemV(crate::checked(id)?));
        // SAFETY: the semaphore is ours; SETVAL takes a number.
        let set = unsafe { libc::semctl(id, 0, libc::SETVAL, libc::c_int::from(value)) };
        crate::checked(set).map(|_| semaphore)
    }

    /// A POSIX semaphore with this value, in private memory.
    pub fn posix(value: u16) -> io::Result<Semaphore> {
        let semaphore = Box::new(UnsafeCell::new(MaybeUninit::uninit()));
        // SAFETY: the memory is ours, and does not move while the semaphore lives.
        crate::checked(unsafe { libc::sem_init(semaphore.get().cast(), 0, value.into()) })?;
        Ok(Semaphore(SemaphoreKind::Posix(semaphore)))
    }

    /// A number with this value: only sleeping and waking are system calls.
    pub fn futex(value: u16) -> Semaphore {
        Semaphore(SemaphoreKind::Futex(AtomicU32::new(value.into())))
    }

    /// Decrements it, and sleeps as long as it is 0. False if a signal ended the sleep.
    #[inline]
    pub fn wait(&self) -> io::Result<bool> {
        let taken = match &self.0 {
            SemaphoreKind::SystemV(id) => operate(*id, -1),
            SemaphoreKind::Posix(semaphore) => {
                // SAFETY: the semaphore was initialised, and lives as long as self.
                crate::checked(unsafe { libc::sem_wait(semaphore.get().cast()) })
            }
            SemaphoreKind::Futex(value) => take(value),
        };
        match taken {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Increments it, and wakes a task that waits for it.
    #[inline]
    pub fn post(&self) -> io::Result<()> {
        match &self.0 {
            SemaphoreKind::SystemV(id) => operate(*id, 1),
            SemaphoreKind::Posix(semaphore) => {
                // SAFETY: the semaphore was initialised, and lives as long as self.
                crate::checked(unsafe { libc::sem_post(semaphore.get().cast()) })
            }
            SemaphoreKind::Futex(value) => {
                value.fetch_add(1, Release);
                futex(value, libc::FUTEX_WAKE, 1)
            }
        }
        .map(drop)
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        match &mut self.0 {
            SemaphoreKind::SystemV(id) => {
                // SAFETY: the semaphore is ours; IPC_RMID takes no argument.
                unsafe { libc::semctl(*id, 0, libc::IPC_RMID) };
            }
            SemaphoreKind::Posix(semaphore) => {
                // SAFETY: nobody waits, as that would need a reference to self.
                unsafe { libc::sem_destroy(semaphore.get().cast()) };
            }
            SemaphoreKind::Futex(_) => {}
        }
    }
}

#[inline]
fn operate(id: libc::c_int, by: libc::c_short) -> io::Result<libc::c_int> {
    let mut operation = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
    // SAFETY: exactly one valid operation is passed.
    crate::checked(unsafe { libc::semop(id, &raw mut operation, 1) })
}

#[inline]
fn take(value: &AtomicU32) -> io::Result<libc::c_int> {
    while value.fetch_update(Acquire, Relaxed, |value| value.checked_sub(1)).is_err() {
        match futex(value, libc::FUTEX_WAIT, 0) {
            // It was incremented before the kernel could put the task to sleep.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            slept => _ = slept?,
        }
    }
    Ok(0)
}

#[inline]
fn futex(word: &AtomicU32, call: libc::c_int, value: u32) -> io::Result<libc::c_int> {
    let call = call | libc::FUTEX_PRIVATE_FLAG;
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the word lives as long as the borrow; there is no time limit.
    let answer = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), call, value, forever) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semaphore_post_wakes_a_waiting_task() {
        let all = [Semaphore::system_v(0), Semaphore::posix(0), Ok(Semaphore::futex(0))];
        for semaphore in all.map(Result::unwrap) {
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| semaphore.wait().unwrap());
                semaphore.post().unwrap();
                assert!(waiting.join().unwrap(), "{semaphore:?}");
            });
        }
    }

    #[test]
    fn semaphore_can_be_taken_as_often_as_its_value_says() {
        let all = [Semaphore::system_v(2), Semaphore::posix(2), Ok(Semaphore::futex(2))];
        for semaphore in all.map(Result::unwrap) {
            assert!(semaphore.wait().unwrap() && semaphore.wait().unwrap());
            semaphore.post().unwrap();
            assert!(semaphore.wait().unwrap());
        }
    }
}
