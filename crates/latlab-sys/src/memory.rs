//! Memory that does not fault: locked, and touched before it is needed.

use latlab_core::size::Bytes;
use std::io;

/// How far memory could be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// All that there is and all that will be.
    All,
    /// What there was at the time of the call.
    Present,
}

/// Locks this process's memory. Where a limit stands (`RLIMIT_MEMLOCK` without `CAP_IPC_LOCK`),
/// future memory is left alone: locking it would make later allocations fail.
pub fn lock_all() -> io::Result<Locked> {
    let everything = libc::MCL_CURRENT | libc::MCL_FUTURE;
    let (flags, locked) = if may_lock_anything()? {
        (everything, Locked::All)
    } else {
        (libc::MCL_CURRENT, Locked::Present)
    };
    // SAFETY: mlockall takes no pointers.
    crate::checked(unsafe { libc::mlockall(flags) })?;
    Ok(locked)
}

/// Locks what memory this process has now, and leaves alone what it will have.
pub fn lock_present() -> io::Result<()> {
    // SAFETY: mlockall takes no pointers.
    crate::checked(unsafe { libc::mlockall(libc::MCL_CURRENT) }).map(drop)
}

/// Undoes [`lock_all`].
pub fn unlock_all() {
    // SAFETY: munlockall takes nothing; it can only fail for lack of memory that was locked.
    unsafe { libc::munlockall() };
}

fn may_lock_anything() -> io::Result<bool> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit to write to.
    crate::checked(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) })?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capable = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << CAP_IPC_LOCK) != 0);
    Ok(capable || limit.rlim_cur == libc::RLIM_INFINITY)
}

/// `linux/capability.h`.
const CAP_IPC_LOCK: u64 = 14;

/// Memory that can be had without swapping, as the kernel estimates it (`MemAvailable`).
pub fn available() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(Bytes(kib * 1024))
}

/// Touches the stack that a probe's loop may use, so that it faults now and not there.
#[inline(never)]
pub fn touch_stack() {
    #[expect(clippy::large_stack_arrays, reason = "a large stack is what it is for")]
    let mut stack = [0u8; 64 * 1024];
    for page in stack.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&mut stack);
}
