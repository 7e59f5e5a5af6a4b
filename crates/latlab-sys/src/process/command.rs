//! Commands whose program the kernel kills when the thread that started it ends.

use super::die_with_parent;
use crate::sched::Policy;
use crate::{capabilities, descriptor, sched, signal};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Prepares to start a program. The kernel kills it when the calling thread ends, and no signal is
/// blocked in it.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the function that all programs are started with"
    )]
    let mut command = Command::new(program);
    before_exec(&mut command, Step::UnblockSignals);
    before_exec(&mut command, Step::DieWith(std::process::id()));
    command
}

/// Prepares to start a program as [`command`] does; it also ignores SIGINT, SIGTERM and SIGHUP. It
/// may share the terminal of this process, which handles these signals and decides when it ends.
pub fn command_ignoring_signals(program: impl AsRef<OsStr>) -> Command {
    let mut command = command(program);
    before_exec(&mut command, Step::IgnoreEndingSignals);
    command
}

/// Leaves `file` open in the program that `command` starts. Returns its number there, which is the
/// same as here.
pub fn inherit(command: &mut Command, file: &impl AsRawFd) -> RawFd {
    let fd = file.as_raw_fd();
    before_exec(command, Step::KeepOpen(fd));
    fd
}

/// Gives the program that `command` starts a scheduling policy.
pub fn schedule(command: &mut Command, policy: Policy) {
    before_exec(command, Step::SetPolicy(policy));
}

/// Drops all capabilities of the program that `command` starts, except for reading all files.
pub fn confine(command: &mut Command) {
    before_exec(command, Step::DropCapabilities);
}

/// A step of the child between fork and exec.
#[derive(Clone, Copy)]
enum Step {
    UnblockSignals,
    DieWith(u32),
    IgnoreEndingSignals,
    KeepOpen(RawFd),
    SetPolicy(Policy),
    DropCapabilities,
}

impl Step {
    fn run(self) -> io::Result<()> {
        match self {
            Step::UnblockSignals => signal::unblock_all(),
            Step::DieWith(parent) => die_with_parent(parent)?,
            Step::IgnoreEndingSignals => signal::ignore_ending_signals()?,
            Step::KeepOpen(fd) => descriptor::keep_open(fd)?,
            Step::SetPolicy(policy) => sched::set_policy(policy)?,
            Step::DropCapabilities => capabilities::keep_reading()?,
        }
        Ok(())
    }
}

fn before_exec(command: &mut Command, step: Step) {
    // SAFETY: each step only makes system calls: it does not allocate and takes no locks.
    unsafe { command.pre_exec(move || step.run()) };
}
