//! Barriers on all CPUs that run threads of ours (`membarrier(2)`).

use std::io;

// As in `linux/membarrier.h`.
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// Wants this process's CPUs to be interrupted by [`everywhere`]. Linux 4.16 and later have it.
pub fn register() -> io::Result<()> {
    call(REGISTER_GLOBAL_EXPEDITED)
}

/// Interrupts every other CPU that runs a thread of a process that has registered.
pub fn everywhere() -> io::Result<()> {
    call(GLOBAL_EXPEDITED)
}

fn call(command: libc::c_int) -> io::Result<()> {
    // SAFETY: membarrier takes no pointers.
    let answer = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
