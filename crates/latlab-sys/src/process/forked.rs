//! Children that go on running this program after a fork.

use super::die_with_parent;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Proof that this process has one thread. A forked child may then go on running Rust code: no
/// other thread can have held a lock at the fork. It can't be sent to another thread.
#[derive(Debug)]
pub struct SingleThread(PhantomData<*const ()>);

impl SingleThread {
    /// The proof; None where there are more threads.
    pub fn prove() -> Option<SingleThread> {
        let threads = std::fs::read_dir("/proc/self/task").ok()?.count();
        (threads == 1).then_some(SingleThread(PhantomData))
    }

    /// Forks a child that runs `body` and ends. It is killed when this process ends.
    pub fn fork(&self, body: impl FnOnce()) -> io::Result<Forked> {
        self.try_fork(|| {
            body();
            Ok(())
        })
    }

    /// Forks a child as [`SingleThread::fork`] does; its exit status says whether `body` failed.
    pub fn try_fork(&self, body: impl FnOnce() -> io::Result<()>) -> io::Result<Forked> {
        let parent = std::process::id();
        // SAFETY: there is one thread, so the child has the whole program in a sound state.
        let pid = crate::checked(unsafe { libc::fork() })?;
        if let Some(child) = Pid::from_raw(pid) {
            return Ok(Forked(child));
        }
        let code = run_in_child(parent, body);
        // SAFETY: _exit takes no pointers, and runs none of the parent's clean-up.
        unsafe { libc::_exit(code) }
    }
}

/// Runs `body` in a forked child, and returns its exit code.
fn run_in_child(parent: u32, body: impl FnOnce() -> io::Result<()>) -> i32 {
    if die_with_parent(parent).is_err() {
        return 1;
    }
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => 1,
        Err(_) => 101,
    }
}

/// A forked child. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct Forked(Pid);

impl Forked {
    /// Waits until it ends by itself. Fails where the child did.
    pub fn wait(self) -> io::Result<()> {
        let failed = || io::Error::other("a child failed");
        let ended = rustix::process::waitpid(Some(self.0), WaitOptions::empty());
        let Ok(Some((_, status))) = ended else { return Err(failed()) };
        // It is reaped: its id may be another's from now on.
        std::mem::forget(self);
        if status.as_raw() == 0 { Ok(()) } else { Err(failed()) }
    }

    fn kill(&self) {
        let _ = rustix::process::kill_process(self.0, Signal::KILL);
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.kill();
        let _ = rustix::process::waitpid(Some(self.0), WaitOptions::empty());
    }
}

/// Waits until all these children have ended by themselves, in any order. When a child fails, the
/// others are killed: a child that waits for the failed one would wait for ever. The process must
/// have no other children.
pub fn wait_for_all(mut children: Vec<Forked>) -> io::Result<()> {
    while !children.is_empty() {
        let status = match rustix::process::wait(WaitOptions::empty()).map_err(io::Error::from) {
            Ok(Some((pid, status))) => {
                if let Some(at) = children.iter().position(|child| child.0 == pid) {
                    std::mem::forget(children.swap_remove(at));
                }
                status.as_raw()
            }
            Ok(None) => continue,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if status != 0 {
            kill_all(children);
            let status = ExitStatus::from_raw(status);
            return Err(io::Error::other(format!("a child process has ended ({status})")));
        }
    }
    Ok(())
}

/// Fails where a child of this process has ended; does not wait, and leaves it to be reaped.
pub fn check_all_running() -> io::Result<()> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match rustix::process::waitid(WaitId::All, options)? {
        Some(_) => Err(io::Error::other("a child process has ended")),
        None => Ok(()),
    }
}

/// Kills all these children before it reaps any: one that still runs could keep another from
/// ending.
pub fn kill_all(children: Vec<Forked>) {
    children.iter().for_each(Forked::kill);
    drop(children);
}
