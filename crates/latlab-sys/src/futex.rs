//! A word in shared memory on which processes sleep until another wakes them (`futex(2)`).

use crate::mapping::Mapping;
use latlab_core::size::Bytes;
use rustix::thread::futex;
use std::io;
use std::sync::atomic::AtomicU32;

/// The word. It is always zero, and shared with the children that are forked after it was made.
#[derive(Debug)]
pub struct Futex(Mapping);

impl Futex {
    /// A new word.
    pub fn new() -> io::Result<Futex> {
        Mapping::shared(Bytes(4096)).map(Futex)
    }

    /// Sleeps until woken, or until a signal comes.
    pub fn wait(&self) {
        let _ = futex::wait(self.word(), futex::Flags::empty(), 0, None);
    }

    /// Wakes all that sleep here. Returns their number.
    ///
    /// Probes measure this call, so it goes through the C library: another way to make it would
    /// change the number of instructions in their samples.
    #[inline]
    pub fn wake_all(&self) -> u32 {
        let word = self.word().as_ptr();
        // SAFETY: the kernel uses the address of the word as a key, and does not read it.
        let woken = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
        u32::try_from(woken).unwrap_or(0)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the mapping begins on a page, is longer than the word, and lives as long as self.
        unsafe { &*self.0.start() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futex_wake_counts_the_sleepers_it_wakes() {
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
