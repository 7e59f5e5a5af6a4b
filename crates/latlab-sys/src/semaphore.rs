//! Semaphores of the tasks of this process: System V's (`semop(2)`), POSIX's (`sem_wait(3)`), and
//! one that is nothing but a number and a futex (`futex(2)`).

use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A semaphore. Dropping it removes it.
#[derive(Debug)]
pub struct Semaphore(Kind);

#[derive(Debug)]
enum Kind {
    SystemV(libc::c_int),
    Posix(Box<UnsafeCell<libc::sem_t>>),
    Futex(AtomicU32),
}

// SAFETY: a semaphore is for several threads to use at once; the C library's type has no owner.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// System V's, with this value. It is seen in the whole IPC namespace, and stays in it if this
    /// process is killed: [`crate::namespace::own_ipc`] comes first.
    pub fn system_v(value: u16) -> io::Result<Semaphore> {
        // SAFETY: semget takes no pointers.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | 0o600) };
        let semaphore = Semaphore(Kind::SystemV(crate::checked(id)?));
        // SAFETY: the semaphore is ours; SETVAL takes a number.
        let set = unsafe { libc::semctl(id, 0, libc::SETVAL, libc::c_int::from(value)) };
        crate::checked(set).map(|_| semaphore)
    }

    /// POSIX's, with this value, in memory of this process alone.
    pub fn posix(value: u16) -> io::Result<Semaphore> {
        // SAFETY: a sem_t is made of integers, for which zero is a value.
        let semaphore = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        // SAFETY: the memory is ours, and stays where it is for as long as the semaphore lives.
        crate::checked(unsafe { libc::sem_init(semaphore.get(), 0, value.into()) })?;
        Ok(Semaphore(Kind::Posix(semaphore)))
    }

    /// A number in memory, with this value: the kernel is asked only to sleep and to wake.
    pub fn futex(value: u16) -> Semaphore {
        Semaphore(Kind::Futex(AtomicU32::new(value.into())))
    }

    /// Takes one, and sleeps until there is one. False if a signal ended the sleep.
    #[inline]
    pub fn wait(&self) -> io::Result<bool> {
        let taken = match &self.0 {
            Kind::SystemV(id) => operate(*id, -1),
            // SAFETY: the semaphore was initialised, and lives as long as self.
            Kind::Posix(semaphore) => crate::checked(unsafe { libc::sem_wait(semaphore.get()) }),
            Kind::Futex(value) => take(value),
        };
        match taken {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives one back, and wakes one who waits for it.
    #[inline]
    pub fn post(&self) -> io::Result<()> {
        match &self.0 {
            Kind::SystemV(id) => operate(*id, 1),
            // SAFETY: the semaphore was initialised, and lives as long as self.
            Kind::Posix(semaphore) => crate::checked(unsafe { libc::sem_post(semaphore.get()) }),
            Kind::Futex(value) => {
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
            Kind::SystemV(id) => {
                // SAFETY: the semaphore is ours; IPC_RMID takes nothing more.
                unsafe { libc::semctl(*id, 0, libc::IPC_RMID) };
            }
            Kind::Posix(semaphore) => {
                // SAFETY: nobody waits: that would take a reference to self.
                unsafe { libc::sem_destroy(semaphore.get()) };
            }
            Kind::Futex(_) => {}
        }
    }
}

#[inline]
fn operate(id: libc::c_int, by: libc::c_short) -> io::Result<libc::c_int> {
    let mut operation = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
    // SAFETY: exactly one valid operation is handed over.
    crate::checked(unsafe { libc::semop(id, &raw mut operation, 1) })
}

#[inline]
fn take(value: &AtomicU32) -> io::Result<libc::c_int> {
    while value.fetch_update(Acquire, Relaxed, |value| value.checked_sub(1)).is_err() {
        match futex(value, libc::FUTEX_WAIT, 0) {
            // There was one to be had before the kernel looked.
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
    // SAFETY: the word lives as long as the borrow; there is no time limit to read.
    let answer = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), call, value, forever) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_goes_on_when_one_is_given() {
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
    fn as_many_can_be_taken_as_there_are() {
        let all = [Semaphore::system_v(2), Semaphore::posix(2), Ok(Semaphore::futex(2))];
        for semaphore in all.map(Result::unwrap) {
            assert!(semaphore.wait().unwrap() && semaphore.wait().unwrap());
            semaphore.post().unwrap();
            assert!(semaphore.wait().unwrap());
        }
    }
}
