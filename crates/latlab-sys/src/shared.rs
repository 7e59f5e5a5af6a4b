//! A page of counters shared by a load's processes and the program that watches them.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What a load tells while it works. All of it can be read at any time, and stays readable when
/// the load is gone, however it went.
#[derive(Debug)]
#[repr(C)]
pub struct Progress {
    done: AtomicU64,
    ready: AtomicBool,
}

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
        // SAFETY: fcntl with F_GETFD takes no pointers; it fails where nothing is open.
        crate::checked(unsafe { libc::fcntl(fd, libc::F_GETFD) })?;
        // SAFETY: the number was given by the parent for this, and is used once.
        SharedPage::map(unsafe { OwnedFd::from_raw_fd(fd) })
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

    pub(crate) fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
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

    /// Says that everything is set up and work begins.
    pub fn set_ready(&self) {
        self.progress().ready.store(true, Relaxed);
    }

    /// Whether work has begun.
    pub fn is_ready(&self) -> bool {
        self.progress().ready.load(Relaxed)
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
        let theirs = SharedPage::map(ours.fd.try_clone().unwrap()).unwrap();
        theirs.add(5);
        theirs.set_ready();
        assert_eq!((ours.done(), ours.is_ready()), (5, true));
    }
}
