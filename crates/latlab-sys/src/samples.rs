//! Samples that processes of ours take and another one keeps: a ring in shared memory for each
//! who writes.

use latlab_core::time::Nanos;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// What one who writes has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was seen.
    pub at: Nanos,
    /// What was seen.
    pub latency: Nanos,
    /// How much was done in that time.
    pub amount: u64,
}

/// Samples of several writers, and one who takes them.
#[derive(Debug)]
pub struct Samples {
    start: *mut libc::c_void,
    writers: usize,
    fd: OwnedFd,
}

/// The ring of one writer. Each half of the positions is written by one side only.
#[derive(Debug)]
#[repr(C, align(4096))]
struct Ring {
    written: AtomicU64,
    lost: AtomicU64,
    taken: AtomicU64,
    stopped: AtomicBool,
    entries: [Entry; ENTRIES],
}

#[derive(Debug)]
#[repr(C)]
struct Entry {
    at: AtomicU64,
    latency: AtomicU64,
    amount: AtomicU64,
}

/// Samples that a writer may be ahead.
pub const ENTRIES: usize = 1 << 14;

// SAFETY: the memory holds nothing but atomics, and stays mapped until drop.
unsafe impl Send for Samples {}
// SAFETY: as above.
unsafe impl Sync for Samples {}

impl Samples {
    /// Room for so many writers, without a name in any file system.
    pub fn of(writers: usize) -> io::Result<Samples> {
        let file = crate::file::in_memory()?;
        file.set_len((writers * size_of::<Ring>()) as u64)?;
        Samples::map(file.into(), writers)
    }

    /// What the parent made for so many writers, and left open for us under this number.
    pub fn inherited(fd: RawFd, writers: usize) -> io::Result<Samples> {
        Samples::map(crate::process::inherited(fd)?.into(), writers)
    }

    fn map(fd: OwnedFd, writers: usize) -> io::Result<Samples> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (number, bytes) = (fd.as_raw_fd(), writers * size_of::<Ring>());
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, number, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Samples { start, writers, fd })
    }

    fn ring(&self, writer: usize) -> &Ring {
        assert!(writer < self.writers, "there is no writer {writer}");
        // SAFETY: there are `writers` rings, one after another.
        let ring = unsafe { self.start.cast::<Ring>().add(writer) };
        // SAFETY: the mapping is aligned to pages, and any bits are a valid Ring but for the flag,
        // which is only ever written as a bool.
        unsafe { &*ring }
    }

    /// Touches the memory that this writer will write to, so that it faults now and not there.
    /// To be called in the writer's own process.
    pub fn touch(&self, writer: usize) {
        for entry in &self.ring(writer).entries {
            entry.amount.store(0, Relaxed);
        }
    }

    /// Adds a sample. Wait-free: where the one who takes them is too far behind, it is lost, and
    /// counted as that. Only this writer may call this.
    #[inline]
    pub fn write(&self, writer: usize, sample: Sample) {
        let ring = self.ring(writer);
        let written = ring.written.load(Relaxed);
        if written - ring.taken.load(Acquire) == ENTRIES as u64 {
            ring.lost.store(ring.lost.load(Relaxed) + 1, Relaxed);
            return;
        }
        let entry = ring.entry(written);
        entry.at.store(sample.at.0, Relaxed);
        entry.latency.store(sample.latency.0, Relaxed);
        entry.amount.store(sample.amount, Relaxed);
        ring.written.store(written + 1, Release);
    }

    /// Takes what has been written since the last time, in the order in which it was seen. Only
    /// one may call this.
    pub fn take(&self, into: &mut Vec<Sample>) {
        into.clear();
        for ring in (0..self.writers).map(|writer| self.ring(writer)) {
            let written = ring.written.load(Acquire);
            let new = ring.taken.load(Relaxed)..written;
            into.extend(new.map(|nth| {
                let entry = ring.entry(nth);
                Sample {
                    at: Nanos(entry.at.load(Relaxed)),
                    latency: Nanos(entry.latency.load(Relaxed)),
                    amount: entry.amount.load(Relaxed),
                }
            }));
            ring.taken.store(written, Release);
        }
        into.sort_by_key(|sample| sample.at);
    }

    /// For how many writers there is room.
    pub fn writers(&self) -> usize {
        self.writers
    }

    /// How many samples were written so far.
    pub fn written(&self) -> u64 {
        (0..self.writers).map(|writer| self.ring(writer).written.load(Relaxed)).sum()
    }

    /// How many samples were lost so far.
    pub fn lost(&self) -> u64 {
        (0..self.writers).map(|writer| self.ring(writer).lost.load(Relaxed)).sum()
    }

    /// Tells the writers to stop, or that they may go on.
    pub fn set_stopped(&self, stopped: bool) {
        self.ring(0).stopped.store(stopped, Release);
    }

    /// Whether the writers are to stop.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.ring(0).stopped.load(Acquire)
    }
}

impl Ring {
    #[inline]
    fn entry(&self, nth: u64) -> &Entry {
        #[expect(clippy::cast_possible_truncation, reason = "the rest is below ENTRIES")]
        &self.entries[nth as usize % ENTRIES]
    }
}

impl AsRawFd for Samples {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        let bytes = self.writers * size_of::<Ring>();
        // SAFETY: exactly the mapping made in `map`; references into it can't outlive self.
        unsafe { libc::munmap(self.start, bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64) -> Sample {
        Sample { at: Nanos(at), latency: Nanos(at + 1), amount: at + 2 }
    }

    #[test]
    fn samples_of_all_writers_come_once_and_in_their_order() {
        let samples = Samples::of(2).unwrap();
        samples.touch(1);
        samples.write(0, sample(3));
        samples.write(0, sample(5));
        samples.write(1, sample(4));
        let mut taken = Vec::new();
        samples.take(&mut taken);
        assert_eq!(taken, [3, 4, 5].map(sample));
        samples.take(&mut taken);
        assert_eq!(taken, []);
        assert_eq!(samples.written(), 3);
    }

    #[test]
    fn a_writer_who_is_too_far_ahead_loses_samples_and_counts_them() {
        let samples = Samples::of(1).unwrap();
        (0..ENTRIES as u64 + 7).for_each(|at| samples.write(0, sample(at)));
        let mut taken = Vec::new();
        samples.take(&mut taken);
        assert_eq!((taken.len(), samples.lost()), (ENTRIES, 7));
        samples.write(0, sample(1));
        samples.take(&mut taken);
        assert_eq!(taken, [sample(1)]);
    }

    #[test]
    fn the_word_to_stop_is_heard_by_all() {
        let samples = Samples::of(2).unwrap();
        assert!(!samples.is_stopped());
        samples.set_stopped(true);
        assert!(samples.is_stopped());
    }
}
