//! A page of counters and times that latlab's processes share.

use crate::descriptor;
use crate::mapping::Mapping;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{
    AtomicU8, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// The number of times that the page has room for.
pub const TIMES: usize = 8;

const SIZE: Bytes = Bytes(4096);

/// The shared page. Children that inherit it or its descriptor see the same counters, which stay
/// readable after the process that wrote them has ended.
#[derive(Debug)]
pub struct SharedPage {
    memory: Mapping,
    fd: OwnedFd,
}

/// The layout of the page.
#[derive(Debug)]
#[repr(C)]
struct Progress {
    done: AtomicU64,
    /// 0 or 1.
    ready: AtomicU8,
    times: [AtomicU64; TIMES],
}

impl SharedPage {
    /// A new page, all zeros, without a name in any file system.
    pub fn new() -> io::Result<SharedPage> {
        let file = crate::file::in_memory()?;
        file.set_len(SIZE.0)?;
        SharedPage::map(file.into())
    }

    /// The page behind a descriptor that the parent process left open.
    pub fn inherited(fd: RawFd) -> io::Result<SharedPage> {
        SharedPage::map(descriptor::inherited_memory(fd, SIZE)?)
    }

    /// Maps the same page once more.
    pub fn try_clone(&self) -> io::Result<SharedPage> {
        SharedPage::map(self.fd.try_clone()?)
    }

    fn map(fd: OwnedFd) -> io::Result<SharedPage> {
        Ok(SharedPage { memory: Mapping::of_file(&fd, SIZE)?, fd })
    }

    fn progress(&self) -> &Progress {
        // SAFETY: the mapping begins on a page, is longer than Progress, and lives as long as self;
        // Progress is made of atomic numbers, for which any bits are a value.
        unsafe { &*self.memory.start() }
    }

    /// Adds `n` finished units of work.
    #[inline]
    pub fn add(&self, n: u64) {
        self.progress().done.fetch_add(n, Relaxed);
    }

    /// Units of work done so far.
    pub fn done(&self) -> u64 {
        self.progress().done.load(Relaxed)
    }

    /// Stores a time in one of the [`TIMES`] places.
    #[inline]
    pub fn note(&self, place: usize, time: Nanos) {
        self.progress().times[place].store(time.0, Release);
    }

    /// The time last stored at this place; 0 where none was.
    #[inline]
    pub fn noted(&self, place: usize) -> Nanos {
        Nanos(self.progress().times[place].load(Acquire))
    }

    /// Marks the set-up as finished: work begins.
    pub fn set_ready(&self) {
        self.progress().ready.store(1, Relaxed);
    }

    /// Whether work has begun.
    pub fn is_ready(&self) -> bool {
        self.progress().ready.load(Relaxed) != 0
    }
}

impl AsRawFd for SharedPage {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd as _;

    /// An access beyond the end of the file would kill the process.
    #[test]
    fn shared_page_of_another_size_is_refused() {
        let file = crate::file::in_memory().unwrap();
        file.set_len(SIZE.0 - 1).unwrap();
        let error = SharedPage::inherited(file.into_raw_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn shared_page_counts_and_times_are_seen_in_another_mapping() {
        let ours = SharedPage::new().unwrap();
        let theirs = ours.try_clone().unwrap();
        theirs.add(5);
        theirs.set_ready();
        theirs.note(3, Nanos(42));
        assert_eq!((ours.done(), ours.is_ready()), (5, true));
        assert_eq!((ours.noted(2), ours.noted(3)), (Nanos(0), Nanos(42)));
    }
}
