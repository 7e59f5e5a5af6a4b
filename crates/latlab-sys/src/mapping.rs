//! Memory mappings, and the operations on them that are measured page by page.
//!
//! They go through the C library. The functions of rustix for mappings are just as unsafe, and
//! calls and loads that are measured use these: their number of instructions must not change.

use latlab_core::size::Bytes;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, fence};

/// A mapping of anonymous memory or of a file (`mmap(2)`). Dropping it unmaps it.
#[derive(Debug)]
pub struct Mapping {
    start: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the memory belongs to the process, whichever of its threads has the mapping.
unsafe impl Send for Mapping {}
// SAFETY: accesses by a shared reference are atomic, or up to the caller of `start`.
unsafe impl Sync for Mapping {}

/// The kind of pages that back a mapping (`Documentation/admin-guide/mm/transhuge.rst`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Huge pages of 2 MiB, where the kernel has them.
    Huge,
    /// Small pages only.
    Small,
}

/// The size of a huge page, in bytes.
const HUGE: usize = 2 << 20;
/// The size of a small page, in bytes.
const SMALL: usize = 4096;

const WRITABLE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

impl Mapping {
    /// Maps private anonymous memory of this size. No page of it is allocated yet.
    pub fn new(size: Bytes) -> io::Result<Mapping> {
        Mapping::map(size, WRITABLE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    /// Maps anonymous memory as [`Mapping::new`] does, aligned to a huge page: kernels before 6.7
    /// do not align it themselves.
    pub fn aligned(size: Bytes) -> io::Result<Mapping> {
        let room = size.0.checked_next_multiple_of(SMALL as u64);
        let room = room.and_then(|size| size.checked_add(HUGE as u64));
        let mut all = Mapping::new(Bytes(room.ok_or(io::ErrorKind::OutOfMemory)?))?;
        let before = all.start.addr().next_multiple_of(HUGE) - all.start.addr();
        let kept = all.bytes - HUGE;
        all.split_off(before + kept);
        Ok(all.split_off(before))
    }

    /// Maps the first bytes of `file`, shared: writes to them go into the page cache. The file must
    /// be at least this long.
    pub fn of_file(file: &impl AsFd, size: Bytes) -> io::Result<Mapping> {
        Mapping::map(size, WRITABLE, libc::MAP_SHARED, file.as_fd().as_raw_fd())
    }

    /// Maps the first bytes of `file`, shared and read-only.
    pub(crate) fn read_only(file: &impl AsFd, size: Bytes) -> io::Result<Sealed> {
        let fd = file.as_fd().as_raw_fd();
        Ok(Sealed { memory: Mapping::map(size, libc::PROT_READ, libc::MAP_SHARED, fd)? })
    }

    /// Maps anonymous memory that children share which are forked from now on.
    pub(crate) fn shared(size: Bytes) -> io::Result<Mapping> {
        Mapping::map(size, WRITABLE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1)
    }

    /// Maps private anonymous memory at this address, a multiple of the small page's size.
    /// `AlreadyExists` where something else is mapped there (`MAP_FIXED_NOREPLACE`, Linux 4.17).
    pub(crate) fn at(address: u64, size: Bytes) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let address = usize::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
        Mapping::map_near(address, size, WRITABLE, flags, -1)
    }

    fn map(
        size: Bytes,
        protection: libc::c_int,
        flags: libc::c_int,
        fd: RawFd,
    ) -> io::Result<Mapping> {
        Mapping::map_near(0, size, protection, flags, fd)
    }

    fn map_near(
        address: usize,
        size: Bytes,
        protection: libc::c_int,
        flags: libc::c_int,
        fd: RawFd,
    ) -> io::Result<Mapping> {
        let bytes = usize::try_from(size.0).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let address = std::ptr::without_provenance_mut(address);
        // SAFETY: none of our flags lets a new mapping replace another one.
        let start = unsafe { libc::mmap(address, bytes, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start, bytes })
    }

    /// Copies `bytes` to this offset of a writable mapping.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.bytes, "{} bytes do not fit at {at}", bytes.len());
        let place = self.start.cast::<u8>().wrapping_add(at);
        // SAFETY: it fits, as was just checked; the mapping is borrowed by nobody else.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// A part of it.
    pub(crate) fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(at + length <= self.bytes, "{length} bytes at {at} are not in the mapping");
        let place = self.start.cast::<u8>().wrapping_add(at);
        // SAFETY: it lies within the mapping, whose pages are initialized with zeros; writing
        // needs `&mut`.
        unsafe { std::slice::from_raw_parts(place, length) }
    }

    /// Splits it at a multiple of the small page's size, at most its length. Returns the second
    /// part.
    fn split_off(&mut self, at: usize) -> Mapping {
        let rest = Mapping { start: self.start.wrapping_byte_add(at), bytes: self.bytes - at };
        self.bytes = at;
        rest
    }

    /// The address at which it begins, a multiple of the small page's size.
    #[inline]
    pub(crate) fn start<T>(&self) -> *mut T {
        self.start.cast()
    }

    /// The number at this byte, a multiple of eight in a writable mapping. The kernel and other
    /// processes may read and write it at the same time.
    pub(crate) fn number(&self, at: usize) -> &AtomicU64 {
        // SAFETY: it is aligned, can be written to, and lives as long as the mapping is borrowed.
        unsafe { AtomicU64::from_ptr(self.place(at)) }
    }

    fn place(&self, at: usize) -> *mut u64 {
        let fits = at.is_multiple_of(8) && at + 8 <= self.bytes;
        assert!(fits, "byte {at} of a mapping of {} is no place for a number", self.bytes);
        self.start.wrapping_byte_add(at).cast()
    }

    /// Asks for pages of one kind, whatever the system's default is (`MADV_HUGEPAGE`). A kernel
    /// without transparent huge pages refuses, and has small pages: this is not an error.
    pub fn prefer(&mut self, pages: Pages) {
        let advice = match pages {
            Pages::Huge => libc::MADV_HUGEPAGE,
            Pages::Small => libc::MADV_NOHUGEPAGE,
        };
        let _ = self.advise(advice);
    }

    /// Writes to each page, so that it is allocated. Returns the number of small pages.
    pub fn touch(&mut self) -> u64 {
        self.touch_while(|| true)
    }

    /// Writes to one page after another until all are allocated or `more` returns false. Returns
    /// the number of small pages written to.
    #[inline]
    pub fn touch_while(&mut self, mut more: impl FnMut() -> bool) -> u64 {
        let mut touched = 0;
        for offset in (0..self.bytes).step_by(SMALL) {
            let page = self.start.cast::<u8>().wrapping_add(offset);
            // SAFETY: it lies within the mapping, which is writable and borrowed by nobody else.
            unsafe { page.write_volatile(1) };
            touched += 1;
            if !more() {
                break;
            }
        }
        touched
    }

    /// Unlocks it and frees all its pages (`MADV_DONTNEED`): a page of anonymous memory that is
    /// touched after that is a new one.
    pub fn empty(&mut self) -> io::Result<()> {
        // SAFETY: exactly our mapping; nothing relies on it being locked.
        crate::checked(unsafe { libc::munlock(self.start, self.bytes) })?;
        self.advise(libc::MADV_DONTNEED)
    }

    /// Allocates all pages in one call (`MADV_POPULATE_WRITE`, Linux 5.14).
    #[inline]
    pub fn populate(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_POPULATE_WRITE)
    }

    #[inline]
    fn advise(&mut self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: exactly our mapping, into which there is no reference.
        crate::checked(unsafe { libc::madvise(self.start, self.bytes, advice) }).map(drop)
    }

    /// Makes it read-only for good (`mprotect(2)`): after that it can only be dropped.
    #[inline]
    pub fn seal(self) -> io::Result<Sealed> {
        // SAFETY: exactly our mapping, into which there is no reference.
        crate::checked(unsafe { libc::mprotect(self.start, self.bytes, libc::PROT_READ) })?;
        Ok(Sealed { memory: self })
    }

    /// Makes it executable and read-only (`mprotect(2)`).
    pub(crate) fn make_executable(&mut self) -> io::Result<()> {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: exactly our mapping, into which there is no reference.
        crate::checked(unsafe { libc::mprotect(self.start, self.bytes, protection) }).map(drop)
    }

    /// Moves its pages to the address of `other`, which is unmapped by that (`mremap(2)`).
    /// `InvalidInput` where the sizes differ.
    #[inline]
    pub fn move_to(&mut self, other: Mapping) -> io::Result<()> {
        if other.bytes != self.bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let (from, to, bytes) = (self.start, other.start, self.bytes);
        // SAFETY: both are our mappings, of this size, and there is no reference into either.
        let moved = unsafe { libc::mremap(from, bytes, bytes, flags, to) };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Its address belongs to this mapping now.
        std::mem::forget(other);
        self.start = moved;
        Ok(())
    }
}

impl Drop for Mapping {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: exactly our mapping, and no reference into it is left. The kernel refuses a
        // length of 0, and unmaps nothing.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

/// A mapping that is read-only.
#[derive(Debug)]
pub struct Sealed {
    memory: Mapping,
}

impl Sealed {
    /// The value at this byte, a multiple of eight, of a number that the kernel may write
    /// meanwhile.
    pub(crate) fn number(&self, at: usize) -> u64 {
        // SAFETY: it is aligned and lies in readable memory; the kernel writes it as a whole.
        let number = unsafe { self.memory.place(at).read_volatile() };
        fence(Acquire);
        number
    }

    /// The address at which it begins, a multiple of the small page's size.
    #[inline]
    pub(crate) fn start<T>(&self) -> *const T {
        self.memory.start()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_touch_counts_each_page_once() {
        assert_eq!(Mapping::new(Bytes(1 << 20)).unwrap().touch(), 256);
        assert_eq!(Mapping::aligned(Bytes(1)).unwrap().touch(), 1);
    }

    #[test]
    fn mapping_faults_again_after_it_was_emptied() {
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
    fn mapping_aligned_begins_on_a_huge_page() {
        for size in [1, 5 << 20] {
            let memory = Mapping::aligned(Bytes(size)).unwrap();
            assert_eq!(memory.start.addr() % HUGE, 0);
            assert_eq!(memory.bytes as u64, size.next_multiple_of(SMALL as u64));
        }
    }

    #[test]
    fn mapping_keeps_its_content_when_it_is_moved() {
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
    fn mapping_of_absurd_size_is_an_error() {
        for size in [1 << 60, u64::MAX - 10] {
            assert!(Mapping::new(Bytes(size)).is_err());
            assert!(Mapping::aligned(Bytes(size)).is_err());
        }
    }
}
