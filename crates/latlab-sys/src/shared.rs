//! A page of numbers shared by processes of ours: what a load counts, when a scan did what.

use latlab_core::time::Nanos;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// What a load tells while it works. All of it can be read at any time, and stays readable when
/// the load is gone, however it went.
#[derive(Debug)]
#[repr(C)]
pub struct Progress {
    done: AtomicU64,
    ready: AtomicBool,
    times: [AtomicU64; TIMES],
}

/// How many times there is room for.
pub const TIMES: usize = 8;

/// The shared page; children that inherit it or its descriptor see the same counters.
#[derive(Debug)]
pub struct SharedPage {
    page: *mut libc::c_void,
    fd: OwnedFd,
}

// SAFETY: the page holds nothing but atomics, and stays mapped until drop.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

const SIZE: usize = 4096;

impl SharedPage {
    /// A fresh page, all counters zero, without a name in any file system.
    pub fn new() -> io::Result<SharedPage> {
        let file = crate::file::in_memory()?;
        file.set_len(SIZE as u64)?;
        SharedPage::map(file.into())
    }

    /// The page behind a descriptor that the parent left open for us.
    pub fn inherited(fd: RawFd) -> io::Result<SharedPage> {
        SharedPage::map(crate::process::inherited(fd)?.into())
    }

    fn map(fd: OwnedFd) -> io::Result<SharedPage> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let number = fd.as_raw_fd();
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), SIZE, protection, libc::MAP_SHARED, number, 0)
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(SharedPage { page, fd })
    }

    /// The same page once more.
    pub fn try_clone(&self) -> io::Result<SharedPage> {
        SharedPage::map(self.fd.try_clone()?)
    }

    fn progress(&self) -> &Progress {
        // SAFETY: the page is aligned, longer than Progress, and any bits are a valid Progress
        // but for the flag, which is only ever written as a bool.
        unsafe { &*self.page.cast::<Progress>() }
    }

    /// Says that `n` more units of work are done.
    #[inline]
    pub fn add(&self, n: u64) {
        self.progress().done.fetch_add(n, Relaxed);
    }

    /// Units of work done so far.
    pub fn done(&self) -> u64 {
        self.progress().done.load(Relaxed)
    }

    /// Notes a time in one of the [`TIMES`] places.
    #[inline]
    pub fn note(&self, place: usize, time: Nanos) {
        self.progress().times[place].store(time.0, Release);
    }

    /// The time that was last noted there; 0 where none was.
    #[inline]
    pub fn noted(&self, place: usize) -> Nanos {
        Nanos(self.progress().times[place].load(Acquire))
    }

    /// Says that everything is set up and work begins.
    pub fn set_ready(&self) {
        self.progress().ready.store(true, Relaxed);
    }

    /// Whether work has begun.
    pub fn is_ready(&self) -> bool {
        self.progress().ready.load(Relaxed)
    }
}

impl AsRawFd for SharedPage {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; references into it can't outlive self.
        unsafe { libc::munmap(self.page, SIZE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_counts_the_other_reads() {
        let ours = SharedPage::new().unwrap();
        let theirs = ours.try_clone().unwrap();
        theirs.add(5);
        theirs.set_ready();
        theirs.note(3, Nanos(42));
        assert_eq!((ours.done(), ours.is_ready()), (5, true));
        assert_eq!((ours.noted(2), ours.noted(3)), (Nanos(0), Nanos(42)));
    }
}
