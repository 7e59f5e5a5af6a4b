//! The descendants of this process: it adopts orphans, and kills all descendants.

use crate::{clock, procfs};
use latlab_core::time::Nanos;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use std::io;
use std::path::Path;

/// Makes this process the parent of all descendants whose own parents end from now on
/// (`PR_SET_CHILD_SUBREAPER(2const)`).
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Kills and reaps all children of this process, and the orphans that it adopts from them, for at
/// most `patience`: a child in uninterruptible sleep ends later. All `Child` values must have been
/// dropped.
pub fn kill_children(patience: Nanos) {
    let deadline = clock::now() + patience;
    while has_children() && clock::now() < deadline {
        for child in children_of(&[own()]).into_iter().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        clock::sleep_for(Nanos::from_millis(1));
    }
}

/// Reaps the children of this process that have ended, up to the first that is `own`, which its own
/// handle reaps. Others are those that it has adopted.
pub fn reap_adopted(own: u32) {
    while let Some(child) = ended_child() {
        if u32::try_from(child.as_raw_nonzero().get()) == Ok(own) {
            return;
        }
        let _ = rustix::process::waitpid(Some(child), WaitOptions::NOHANG);
    }
}

/// A child of this process that has ended. It is not reaped.
fn ended_child() -> Option<Pid> {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // rustix does not return which process it was. SAFETY: a `siginfo_t` consists of numbers and
    // pointers, which may be zero.
    let mut ended: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes a `siginfo_t` to it.
    if unsafe { libc::waitid(libc::P_ALL, 0, &raw mut ended, options) } != 0 {
        return None;
    }
    // SAFETY: waitid(2) sets the process, or leaves it 0 where no child has ended.
    Pid::from_raw(unsafe { ended.si_pid() })
}

/// Whether this process has children, zombies included.
pub(super) fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// The ID of this process.
pub(super) fn own() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The children of these processes.
pub(super) fn children_of(parents: &[i32]) -> Vec<i32> {
    const PARENT: usize = 4;
    let tasks = procfs::numbered(Path::new("/proc")).unwrap_or_default();
    let tasks = tasks.iter().filter_map(|path| procfs::number(path));
    // A process may have ended since it was listed.
    let parent = |task: i32| procfs::stat_field::<i32>(task, PARENT);
    tasks.filter(|task| parent(*task).is_ok_and(|parent| parents.contains(&parent))).collect()
}
