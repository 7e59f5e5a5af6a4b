//! A word on which processes of ours sleep until another one wakes them (`futex(2)`).

use std::io;
use std::sync::atomic::AtomicU32;

/// The word, always zero, shared with the children forked after it was made.
#[derive(Debug)]
pub struct Futex(*mut libc::c_void);

// SAFETY: the page holds nothing but an atomic, and stays mapped until drop.
unsafe impl Send for Futex {}
// SAFETY: as above.
unsafe impl Sync for Futex {}

const SIZE: usize = 4096;

impl Futex {
    /// A word.
    pub fn new() -> io::Result<Futex> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, protection, flags, -1, 0) };
        if page == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Futex(page)) }
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is aligned and longer than the word, and stays mapped until drop.
        unsafe { &*self.0.cast::<AtomicU32>() }
    }

    /// Sleeps until woken.
    pub fn wait(&self) {
        let (word, forever) = (self.word().as_ptr(), std::ptr::null::<libc::timespec>());
        // SAFETY: the word stays mapped meanwhile; there is no time limit to read.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, 0, forever) };
    }

    /// Wakes all who sleep here. How many those were.
    #[inline]
    pub fn wake_all(&self) -> u32 {
        let word = self.word().as_ptr();
        // SAFETY: the word is only named, not read.
        let woken = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
        u32::try_from(woken).unwrap_or(0)
    }
}

impl Drop for Futex {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; references into it can't outlive self.
        unsafe { libc::munmap(self.0, SIZE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_is_woken_and_counted() {
        let futex = Futex::new().unwrap();
        assert_eq!(futex.wake_all(), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| futex.wait());
            while futex.wake_all() == 0 {
                std::thread::yield_now();
            }
        });
    }
}
