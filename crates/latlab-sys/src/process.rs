//! Processes that latlab starts and that end with it: workers of loads, forked children, programs.

mod command;
mod descendants;
mod find;
mod forked;
mod orphans;
mod output;
mod patience;
mod reexec;
mod running;
mod worker;

pub use crate::descriptor::{inherited, pipe};
pub use command::{command, command_ignoring_signals, confine, inherit, schedule};
pub use descendants::{adopt_orphans, kill_children, reap_adopted};
pub use find::find;
pub use forked::{Forked, SingleThread, check_all_running, kill_all, wait_for_all};
pub use orphans::Orphans;
pub use output::output;
pub use patience::Patience;
pub use reexec::{SelfExec, exec_program, is_no_op, silence};
pub use running::Running;
pub use worker::Worker;

use rustix::process::{Resource, Signal};
use std::ffi::CString;
use std::io;

/// Whether this process runs as root (effective user 0).
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The effective user ID of this process.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Checks that the kernel gives random numbers, without which the standard library panics.
///
/// # Errors
///
/// `getrandom(2)` fails, and is not merely unknown or denied: there is `/dev/urandom` then.
pub fn check_random() -> io::Result<()> {
    use rustix::io::Errno;
    use rustix::rand::{GetRandomFlags, getrandom};
    match getrandom(&mut [0_u8; 8], GetRandomFlags::NONBLOCK) {
        Ok(_) | Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The limit on the stack of this process (`RLIMIT_STACK`), in bytes; none where there is no limit.
pub fn stack_limit() -> Option<u64> {
    rustix::process::getrlimit(Resource::Stack).current
}

/// Has the kernel kill this process when the thread that started it ends
/// (`PR_SET_PDEATHSIG(2const)`). `NotFound` where the parent process has ended already.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before the signal was set.
    let ours = std::os::unix::process::parent_id();
    if ours == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Has the kernel send this process SIGTERM, no longer SIGKILL, when the thread that started it ends,
/// so that it can end processes of its own first.
pub fn terminate_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// Sets the name (`comm`) of the calling thread and of processes that it forks from now on. The
/// kernel keeps 15 bytes; a zero byte ends the name.
pub fn set_thread_name(name: &str) -> io::Result<()> {
    let bytes = name.bytes().take_while(|byte| *byte != 0).collect::<Vec<_>>();
    Ok(rustix::thread::set_name(&CString::new(bytes)?)?)
}

/// Raises the limit of open files of this process to its hard limit.
pub fn raise_file_limit() -> io::Result<()> {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(rustix::process::setrlimit(Resource::Nofile, limit)?)
}
