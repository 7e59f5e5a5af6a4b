//! Memory without page faults: locked, and touched before it is needed.

use latlab_core::size::Bytes;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::process::{Resource, getrlimit};
use std::io;

/// The memory that [`lock_all`] has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// All present and future memory of the process.
    All,
    /// The memory that it had at the time of the call.
    Present,
}

/// Locks the memory of this process. Under a limit (`RLIMIT_MEMLOCK` without `CAP_IPC_LOCK`), it
/// leaves out future memory: locking that would make later allocations fail.
pub fn lock_all() -> io::Result<Locked> {
    if may_lock_anything() {
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?;
        Ok(Locked::All)
    } else {
        lock_present()?;
        Ok(Locked::Present)
    }
}

/// The size of a page of memory, in bytes: 4096, on arm64 also 16 384 or 65 536. Not from rustix,
/// which panics where it can't read the auxiliary vector.
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf takes a number and returns one.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Locks the present memory of this process, not its future memory.
pub fn lock_present() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT)?)
}

/// Undoes [`lock_all`].
pub fn unlock_all() {
    let _ = munlockall();
}

/// Available memory without swapping, as the kernel estimates it (`MemAvailable`).
pub fn available() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(Bytes(kib * 1024))
}

/// Touches the stack that the loop of a probe may use, so that no page fault comes later.
#[inline(never)]
pub fn touch_stack() {
    #[expect(clippy::large_stack_arrays, reason = "the stack is to grow by this much")]
    let mut stack = [0u8; 64 * 1024];
    for page in stack.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&mut stack);
}

/// Makes this much of the calling thread's heap resident. From now on the process keeps freed
/// memory of the heap, except for blocks of more than 32 MiB and whole arenas of ended threads.
/// Returning memory to the kernel would interrupt all CPUs on which its threads run, those of
/// probes too (TLB shootdown).
pub fn reserve_heap(size: Bytes) {
    /// The largest that glibc takes (`DEFAULT_MMAP_THRESHOLD_MAX`, malloc/malloc.c). Larger blocks are
    /// mapped each by itself.
    const LARGEST_IN_HEAP: libc::c_int = 32 << 20;
    // SAFETY: mallopt takes two numbers.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_IN_HEAP) };
    // SAFETY: as above.
    unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX) };
    let mut heap = vec![0u8; usize::try_from(size.0).unwrap_or(0)];
    for page in heap.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&mut heap);
}

fn may_lock_anything() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capable = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << CAP_IPC_LOCK) != 0);
    capable || getrlimit(Resource::Memlock).current.is_none()
}

/// `linux/capability.h`.
const CAP_IPC_LOCK: u64 = 14;
