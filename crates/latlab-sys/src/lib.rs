//! The system calls of latlab, and every change that it makes to a machine.
//!
//! All `unsafe` of the program is here. The functions are thin and safe: errors are the kernel's
//! own ([`std::io::Error`]), times are [`latlab_core::time::Nanos`] on `CLOCK_MONOTONIC`.
//!
//! System calls go through `std` and rustix where these have a safe function. Two kinds use the C
//! library: calls that these lack, and calls of probes between two samples, where another way to
//! make the call would change the number of instructions.

pub mod bpf;
pub mod capabilities;
pub mod cgroup;
pub mod claim;
pub mod clock;
pub mod clock_watch;
pub mod code;
pub mod console;
pub mod cpu;
pub mod descriptor;
pub mod driver;
pub mod file;
pub mod futex;
#[doc(hidden)]
pub mod fuzz;
pub mod guard;
pub mod hpet;
pub mod icmp;
pub mod init;
mod ioctl;
pub mod irq;
pub mod knob;
pub mod listener;
pub mod lock;
pub mod machine;
pub mod mailbox;
pub mod mapping;
pub mod mark;
pub mod membarrier;
pub mod memory;
pub mod mutex;
pub mod namespace;
pub mod peer;
pub mod perf;
pub mod poll;
pub mod process;
mod procfs;
pub mod queue;
pub mod quota;
pub mod root;
pub mod rt_task_events;
pub mod rtc;
pub mod samples;
pub mod sched;
pub mod semaphore;
pub mod shared;
pub mod signal;
pub mod socket;
pub mod sound;
pub mod start_barrier;
pub mod stdout;
pub mod terminal;
#[cfg(test)]
mod testing;
pub mod thread;
pub mod timer;
pub mod usage;
pub mod watched;

/// Error number of "operation not permitted".
pub const EPERM: i32 = libc::EPERM;
/// Error number of "device or resource busy": a deadline task that can't be admitted gets it.
pub const EBUSY: i32 = libc::EBUSY;
/// Error number of "invalid argument".
pub const EINVAL: i32 = libc::EINVAL;

/// The answer of a wait that has just failed: false where a signal has ended it; otherwise the error, with
/// the name of the wait.
pub(crate) fn interrupted(wait: &str) -> std::io::Result<bool> {
    let error = std::io::Error::last_os_error();
    match error.kind() {
        std::io::ErrorKind::Interrupted => Ok(false),
        kind => Err(std::io::Error::new(kind, format!("{wait}: {error}"))),
    }
}

/// The result of a call of the C library that returns a negative number where it fails.
pub(crate) fn checked(answer: libc::c_int) -> std::io::Result<libc::c_int> {
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(answer) }
}
