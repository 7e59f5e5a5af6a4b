//! Tasks as /proc shows them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The entries of a folder whose names are numbers, as `/proc` has one for each process.
pub(crate) fn numbered(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| number(path).is_some());
    Ok(paths)
}

/// The number that is the name of this entry.
pub(crate) fn number(path: &Path) -> Option<i32> {
    path.file_name()?.to_str()?.parse().ok()
}

/// The name of a task (`comm`).
pub(crate) fn name(task: i32) -> io::Result<String> {
    let name = fs::read_to_string(format!("/proc/{task}/comm"))?;
    Ok(name.trim_end_matches('\n').to_owned())
}

/// A field of `/proc/TASK/stat` after the name, counted from 1 as in `proc_pid_stat(5)`.
pub(crate) fn stat_field<N: FromStr>(task: i32, field: usize) -> io::Result<N> {
    let text = fs::read_to_string(format!("/proc/{task}/stat"))?;
    // The name stands in parentheses and may contain some itself. The third field follows.
    let rest = text.rsplit_once(") ").map(|(_, rest)| rest);
    let value = rest.and_then(|rest| rest.split(' ').nth(field.checked_sub(3)?)?.parse().ok());
    value.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Runs,
    /// By a signal, as of Ctrl-Z.
    Stopped,
    /// It was killed or ends by itself, and may still have files open and locked.
    Ending,
    /// There is no such process here.
    Gone,
}

impl Life {
    /// The present one of this process. An error where that can't be known.
    pub(crate) fn of(process: i32) -> io::Result<Life> {
        match read_life(process) {
            Err(error) if is_gone(&error) => Ok(Life::Gone),
            life => life,
        }
    }
}

fn read_life(process: i32) -> io::Result<Life> {
    const STATE: usize = 3;
    const FLAGS: usize = 9;
    /// `PF_EXITING` of `linux/sched.h`.
    const EXITING: u64 = 4;
    let state: char = stat_field(process, STATE)?;
    let flags: u64 = stat_field(process, FLAGS)?;
    Ok(match state {
        'Z' | 'X' => Life::Ending,
        _ if flags & EXITING != 0 || is_being_killed(process)? => Life::Ending,
        'T' => Life::Stopped,
        _ => Life::Runs,
    })
}

/// Whether SIGKILL is pending: a process may wait for the CPU before it takes the signal.
fn is_being_killed(process: i32) -> io::Result<bool> {
    const KILL: u64 = 1 << (libc::SIGKILL - 1);
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    Ok(pending.is_some_and(|mask| mask & KILL != 0))
}

/// Whether the error of reading a file of a task means that the task has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Child;

    fn signal(child: &Child, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Waits until the process does this.
    fn wait_for(process: i32, life: Life) {
        while Life::of(process).unwrap() != life {
            std::thread::yield_now();
        }
    }

    #[test]
    fn process_that_is_stopped_or_killed_is_told_from_one_that_runs() {
        let mut child = crate::process::command("/bin/sleep").arg("1000").spawn().unwrap();
        let process = child.id().try_into().unwrap();
        assert_eq!(Life::of(process).unwrap(), Life::Runs);
        signal(&child, rustix::process::Signal::STOP);
        wait_for(process, Life::Stopped);
        signal(&child, rustix::process::Signal::KILL);
        // From now on, whatever it still has to do.
        wait_for(process, Life::Ending);
        child.wait().unwrap();
        assert_eq!(Life::of(process).unwrap(), Life::Gone);
    }
}
