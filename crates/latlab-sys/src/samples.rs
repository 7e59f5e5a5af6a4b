//! Samples on their way from worker processes to the one that records them: a ring in shared memory
//! for each writer.

use crate::descriptor;
use crate::mapping::Mapping;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{
    AtomicU8, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// A sample of one writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time at which it was taken.
    pub at: Nanos,
    /// The measured latency.
    pub latency: Nanos,
    /// The amount of work done in that time.
    pub amount: u64,
}

/// The most samples that a writer may be ahead of the reader.
pub const ENTRIES: usize = 1 << 14;

/// The rings of several writers, for one reader.
#[derive(Debug)]
pub struct Samples {
    memory: Mapping,
    writers: usize,
    fd: OwnedFd,
}

/// The ring of one writer. The reader writes `taken`, and `stopped` of the first ring; the writer
/// everything else.
#[derive(Debug)]
#[repr(C, align(4096))]
struct Ring {
    written: AtomicU64,
    lost: AtomicU64,
    taken: AtomicU64,
    /// 0 or 1.
    stopped: AtomicU8,
    slots: [Slot; ENTRIES],
}

/// The place of one sample.
#[derive(Debug)]
#[repr(C)]
struct Slot {
    at: AtomicU64,
    latency: AtomicU64,
    amount: AtomicU64,
}

impl Samples {
    /// Rings for this number of writers, without a name in any file system.
    pub fn of(writers: usize) -> io::Result<Samples> {
        let file = crate::file::in_memory()?;
        file.set_len(size(writers).0)?;
        Samples::map(file.into(), writers)
    }

    /// The rings that the parent process made for this number of writers and left open under this
    /// descriptor.
    pub fn inherited(fd: RawFd, writers: usize) -> io::Result<Samples> {
        Samples::map(descriptor::inherited_memory(fd, size(writers))?, writers)
    }

    fn map(fd: OwnedFd, writers: usize) -> io::Result<Samples> {
        Ok(Samples { memory: Mapping::of_file(&fd, size(writers))?, writers, fd })
    }

    fn ring(&self, writer: usize) -> &Ring {
        assert!(writer < self.writers, "there is no writer {writer}");
        let ring = self.memory.start::<Ring>().wrapping_add(writer);
        // SAFETY: there are `writers` rings, one after another; the mapping begins on a page and
        // lives as long as self; a Ring is made of atomic numbers, for which any bits are a value.
        unsafe { &*ring }
    }

    /// Touches the memory of this writer's ring, so that no page fault comes later. To be called in
    /// the writer's own process.
    pub fn touch(&self, writer: usize) {
        for slot in &self.ring(writer).slots {
            slot.amount.store(0, Relaxed);
        }
    }

    /// Adds a sample, wait-free. When the ring is full, the sample is lost and counted as lost.
    /// Only this writer may call this.
    #[inline]
    pub fn write(&self, writer: usize, sample: Sample) {
        let ring = self.ring(writer);
        let written = ring.written.load(Relaxed);
        if written - ring.taken.load(Acquire) == ENTRIES as u64 {
            ring.lost.store(ring.lost.load(Relaxed) + 1, Relaxed);
            return;
        }
        let slot = ring.slot(written);
        slot.at.store(sample.at.0, Relaxed);
        slot.latency.store(sample.latency.0, Relaxed);
        slot.amount.store(sample.amount, Relaxed);
        ring.written.store(written + 1, Release);
    }

    /// Replaces the content of `into` by the samples written since the last call, ordered by time.
    /// Only the reader may call this.
    pub fn take(&self, into: &mut Vec<Sample>) {
        into.clear();
        for ring in (0..self.writers).map(|writer| self.ring(writer)) {
            let written = ring.written.load(Acquire);
            let new = ring.taken.load(Relaxed)..written;
            into.extend(new.map(|position| ring.slot(position).sample()));
            ring.taken.store(written, Release);
        }
        into.sort_by_key(|sample| sample.at);
    }

    /// The number of writers.
    pub fn writers(&self) -> usize {
        self.writers
    }

    /// The number of samples written so far.
    pub fn written(&self) -> u64 {
        (0..self.writers).map(|writer| self.ring(writer).written.load(Relaxed)).sum()
    }

    /// The number of samples lost so far.
    pub fn lost(&self) -> u64 {
        (0..self.writers).map(|writer| self.ring(writer).lost.load(Relaxed)).sum()
    }

    /// Tells the writers to stop (true) or to go on.
    pub fn set_stopped(&self, stopped: bool) {
        self.ring(0).stopped.store(stopped.into(), Release);
    }

    /// Whether the writers must stop.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.ring(0).stopped.load(Acquire) != 0
    }
}

impl Ring {
    #[inline]
    fn slot(&self, position: u64) -> &Slot {
        #[expect(clippy::cast_possible_truncation, reason = "the remainder is below ENTRIES")]
        &self.slots[position as usize % ENTRIES]
    }
}

impl Slot {
    fn sample(&self) -> Sample {
        Sample {
            at: Nanos(self.at.load(Relaxed)),
            latency: Nanos(self.latency.load(Relaxed)),
            amount: self.amount.load(Relaxed),
        }
    }
}

/// The memory that the rings of this number of writers take.
fn size(writers: usize) -> Bytes {
    Bytes(writers.saturating_mul(size_of::<Ring>()) as u64)
}

impl AsRawFd for Samples {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64) -> Sample {
        Sample { at: Nanos(at), latency: Nanos(at + 1), amount: at + 2 }
    }

    #[test]
    fn samples_of_all_writers_are_taken_once_in_order_of_time() {
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
    fn samples_that_do_not_fit_the_ring_are_counted_as_lost() {
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
    fn samples_stop_is_seen_by_all_writers() {
        let samples = Samples::of(2).unwrap();
        assert!(!samples.is_stopped());
        samples.set_stopped(true);
        assert!(samples.is_stopped());
    }
}
