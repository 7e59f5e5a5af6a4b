//! Memory of our own, and what can be done to it page after page.

use latlab_core::size::Bytes;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, fence};

/// Anonymous memory or that of a file, given back when it is dropped (`mmap(2)`, `munmap(2)`).
#[derive(Debug)]
pub struct Mapping {
    start: *mut libc::c_void,
    bytes: usize,
}

/// What memory is made of (`Documentation/admin-guide/mm/transhuge.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages of 2 MiB, where the kernel has them.
    Huge,
    /// Small pages only.
    Small,
}

/// The size of a huge page.
const HUGE: usize = 2 << 20;
/// And of a small one.
const SMALL: usize = 4096;

const WRITABLE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

impl Mapping {
    /// So many bytes, none of which has memory behind it yet.
    pub fn new(size: Bytes) -> io::Result<Mapping> {
        Mapping::map(size, WRITABLE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// The first bytes of `file`, which has as many: what is written to them goes into the page
    /// cache.
    pub fn of_file(file: &File, size: Bytes) -> io::Result<Mapping> {
        Mapping::map(size, WRITABLE, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// The first bytes of `file`, that nobody writes to through this mapping.
    pub(crate) fn to_read(file: &File, size: Bytes) -> io::Result<Sealed> {
        let mapping = Mapping::map(size, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())?;
        Ok(Sealed { memory: mapping })
    }

    fn map(
        size: Bytes,
        protection: libc::c_int,
        flags: libc::c_int,
        fd: RawFd,
    ) -> io::Result<Mapping> {
        let bytes = usize::try_from(size.0).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start, bytes })
    }

    /// The same, and they begin where a huge page can: kernels before 6.7 do not see to it.
    pub fn aligned(size: Bytes) -> io::Result<Mapping> {
        let room = size.0.checked_next_multiple_of(SMALL as u64);
        let room = room.and_then(|size| size.checked_add(HUGE as u64));
        let mut all = Mapping::new(Bytes(room.ok_or(io::ErrorKind::OutOfMemory)?))?;
        let before = all.start.addr().next_multiple_of(HUGE) - all.start.addr();
        let kept = all.bytes - HUGE;
        all.split_off(before + kept);
        Ok(all.split_off(before))
    }

    /// Gives away what comes after so many bytes, a multiple of the small page's size.
    fn split_off(&mut self, at: usize) -> Mapping {
        // SAFETY: the callers' `at` is at most the length of the mapping.
        let start = unsafe { self.start.byte_add(at) };
        let rest = Mapping { start, bytes: self.bytes - at };
        self.bytes = at;
        rest
    }

    /// The number at this byte, a multiple of eight within a mapping that can be written to: others,
    /// such as the kernel, may read and write it meanwhile.
    pub(crate) fn number(&self, at: usize) -> &AtomicU64 {
        // SAFETY: it is aligned, can be written to, and lives as long as the mapping is borrowed.
        unsafe { AtomicU64::from_ptr(self.place(at)) }
    }

    fn place(&self, at: usize) -> *mut u64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "{at} is no number of this mapping");
        // SAFETY: the number lies within the mapping.
        unsafe { self.start.byte_add(at).cast() }
    }

    /// Asks for pages of one kind, whatever the machine's default is. A kernel without huge
    /// pages has small ones and refuses to be told so: that is no failure.
    pub fn prefer(&mut self, pages: Pages) {
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Small => libc::MADV_NOHUGEPAGE,
        };
        let _ = self.advise(advice);
    }

    /// Touches each page, so that it gets memory. How many small ones there are.
    pub fn touch(&mut self) -> u64 {
        self.touch_while(|| true)
    }

    /// Touches one page after another, as long as `more` says after each, or until all are touched.
    /// How many small ones were.
    #[inline]
    pub fn touch_while(&mut self, mut more: impl FnMut() -> bool) -> u64 {
        let mut touched = 0;
        for offset in (0..self.bytes).step_by(SMALL) {
            // SAFETY: `offset` lies within the mapping.
            let page = unsafe { self.start.cast::<u8>().add(offset) };
            // SAFETY: the mapping is writable, and nobody else knows it.
            unsafe { page.write_volatile(1) };
            touched += 1;
            if !more() {
                break;
            }
        }
        touched
    }

    /// Takes all memory away from it, which is locked no more: whoever touches a page of anonymous
    /// memory then gets a fresh one from the kernel.
    pub fn empty(&mut self) -> io::Result<()> {
        // SAFETY: exactly our mapping; that it is locked keeps nothing alive.
        crate::checked(unsafe { libc::munlock(self.start, self.bytes) })?;
        // SAFETY: exactly our mapping, into which there is no reference.
        let emptied = unsafe { libc::madvise(self.start, self.bytes, libc::MADV_DONTNEED) };
        crate::checked(emptied).map(drop)
    }

    /// Has the kernel give all of it memory in one call (`MADV_POPULATE_WRITE`, Linux 5.14).
    #[inline]
    pub fn populate(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_POPULATE_WRITE)
    }

    #[inline]
    fn advise(&mut self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: exactly our mapping; none of the advices given here takes memory away.
        crate::checked(unsafe { libc::madvise(self.start, self.bytes, advice) }).map(drop)
    }

    /// Forbids writing to it, for good (`mprotect(2)`): it can only be dropped then.
    #[inline]
    pub fn seal(self) -> io::Result<Sealed> {
        // SAFETY: exactly our mapping, into which there is no reference.
        crate::checked(unsafe { libc::mprotect(self.start, self.bytes, libc::PROT_READ) })?;
        Ok(Sealed { memory: self })
    }

    /// Moves its pages to the place of `other`, which is gone then (`mremap(2)`). Both have to
    /// be of the same size.
    #[inline]
    pub fn move_to(&mut self, other: Mapping) -> io::Result<()> {
        if other.bytes != self.bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let (from, to, bytes) = (self.start, other.start, self.bytes);
        // SAFETY: both are mappings of ours and of this size, into which there are no references.
        let moved = unsafe { libc::mremap(from, bytes, bytes, flags, to) };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // What `other` was is ours now.
        std::mem::forget(other);
        self.start = moved;
        Ok(())
    }
}

// SAFETY: the memory belongs to the process, whichever of its threads has the mapping.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: exactly our mapping, and no reference into it is left; of nothing nothing is
        // unmapped.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

/// Memory that can't be written to any more.
#[derive(Debug)]
pub struct Sealed {
    memory: Mapping,
}

impl Sealed {
    /// What the number at this byte, a multiple of eight within it, is now, where the kernel writes.
    pub(crate) fn number(&self, at: usize) -> u64 {
        // SAFETY: it is aligned and lies in memory that can be read; what the kernel writes to it
        // meanwhile, it writes as a whole.
        let number = unsafe { self.memory.place(at).read_volatile() };
        fence(Acquire);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_touched_once() {
        assert_eq!(Mapping::new(Bytes(1 << 20)).unwrap().touch(), 256);
        assert_eq!(Mapping::aligned(Bytes(1)).unwrap().touch(), 1);
    }

    #[test]
    fn what_was_emptied_has_to_be_given_memory_again() {
        use crate::usage::of_thread;
        let mut memory = Mapping::new(Bytes(1 << 20)).unwrap();
        memory.prefer(Pages::Small);
        let mut faults = || {
            let before = of_thread().minor_faults;
            memory.touch();
            let faults = of_thread().minor_faults - before;
            (faults, memory.empty().is_ok())
        };
        for _ in 0..2 {
            let (faults, emptied) = faults();
            assert!(emptied && (256..300).contains(&faults), "{faults}");
        }
        let mut left = 3;
        let touched = memory.touch_while(|| {
            left -= 1;
            left > 0
        });
        assert_eq!(touched, 3);
    }

    #[test]
    fn it_begins_where_a_huge_page_can() {
        for size in [1, 5 << 20] {
            let memory = Mapping::aligned(Bytes(size)).unwrap();
            assert_eq!(memory.start.addr() % HUGE, 0);
            assert_eq!(memory.bytes as u64, size.next_multiple_of(SMALL as u64));
        }
    }

    #[test]
    fn what_was_moved_is_still_there() {
        let (mut from, to) =
            (Mapping::new(Bytes(1 << 20)).unwrap(), Mapping::new(Bytes(1 << 20)).unwrap());
        let place = to.start;
        from.touch();
        from.move_to(to).unwrap();
        assert_eq!(from.start, place);
        // SAFETY: the mapping is readable and at least a page long.
        assert_eq!(unsafe { from.start.cast::<u8>().read_volatile() }, 1);
        assert!(from.move_to(Mapping::new(Bytes(1 << 21)).unwrap()).is_err());
    }

    #[test]
    fn absurd_sizes_are_refused_by_the_kernel_not_by_a_panic() {
        for size in [1 << 60, u64::MAX - 10] {
            assert!(Mapping::new(Bytes(size)).is_err());
            assert!(Mapping::aligned(Bytes(size)).is_err());
        }
    }
}
