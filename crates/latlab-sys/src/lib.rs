//! Every system call that latlab makes by hand, and every change it makes to a machine.
//!
//! All hand-written `unsafe` of the project is here. The functions are thin and safe: errors are
//! the kernel's own ([`std::io::Error`]), times are [`latlab_core::time::Nanos`] on
//! `CLOCK_MONOTONIC`.

pub mod bpf;
pub mod claim;
pub mod clock;
pub mod comings;
pub mod console;
pub mod cpu;
pub mod driver;
pub mod file;
pub mod futex;
pub mod gate;
pub mod guard;
pub mod hpet;
pub mod icmp;
pub mod init;
mod ioctl;
pub mod irq;
pub mod knob;
pub mod listener;
mod lock;
pub mod machine;
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
pub mod queue;
pub mod root;
pub mod rtc;
pub mod samples;
pub mod sched;
pub mod semaphore;
pub mod shared;
pub mod signal;
pub mod socket;
pub mod sound;
pub mod terminal;
pub mod timer;
pub mod usage;

/// "Operation not permitted", as the kernel numbers it.
pub const EPERM: i32 = libc::EPERM;
/// "Device or resource busy": what a deadline task is told where it can't be admitted.
pub const EBUSY: i32 = libc::EBUSY;
/// "Invalid argument".
pub const EINVAL: i32 = libc::EINVAL;

/// The kernel's answer to a call that says failure with a negative number.
pub(crate) fn checked(answer: libc::c_int) -> std::io::Result<libc::c_int> {
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(answer) }
}
