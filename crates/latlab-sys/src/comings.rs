//! Hearing that tasks of real-time policy come and go, by the kernel's tracepoints and a probe: how
//! many there are is asked of /proc then.

mod policies;

pub use policies::Unprobed;

use crate::clock::timespec;
use crate::mapping::{Mapping, Sealed};
use crate::perf;
use crate::root::Root;
use crate::sched;
use latlab_core::cpulist::CpuList;
use latlab_core::mechanism::RealTimeTask;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use policies::Policies;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};

/// Hears, on these CPUs, of every task that may have become, or ceased to be, one of real-time
/// policy. The kernel filters: nobody is woken for ordinary tasks but those that ask for a policy, as
/// each new thread of the kernel does, too.
#[derive(Debug)]
pub struct Comings {
    /// Each with the memory that the kernel notes it in, without which it wakes nobody; it is not
    /// read.
    points: Vec<(File, Sealed)>,
    /// Hears of every policy that is given, where the kernel lets it: else tracepoints do.
    policies: Result<Policies, Unprobed>,
}

/// Why nothing can be heard, and what would help.
#[derive(Debug, thiserror::Error)]
pub enum Deaf {
    /// There are no tracepoints to be found.
    #[error(
        "tracefs is not mounted, or this kernel has no tracepoint {0}: do `mount -t tracefs \
         tracefs /sys/kernel/tracing`"
    )]
    Missing(&'static str),
    /// They can't be used.
    #[error("the tracepoint {0} can't be heard ({1}): it needs root, and perf events")]
    Refused(&'static str, io::Error),
}

/// Real-time tasks have a number below this (`MAX_RT_PRIO`).
const REALTIME: Option<&str> = Some("prio < 100");

type Point = (&'static str, Option<&'static str>);

/// Tasks that are forked as one, and that end as one.
const TASKS: [Point; 2] =
    [("sched/sched_wakeup_new", REALTIME), ("sched/sched_process_exit", REALTIME)];

/// The calls that give a policy, those of 32 bits left out. While anybody listens to any call's
/// tracepoint, all calls of all tasks go a longer way through the kernel.
const CALLS: [Point; 2] =
    [("syscalls/sys_exit_sched_setscheduler", None), ("syscalls/sys_exit_sched_setattr", None)];

/// A page that says where the kernel is, and one it writes to, over and over.
const PAGES: Bytes = Bytes(2 * 4096);

impl Comings {
    /// Begins to hear.
    pub fn listen(root: &Root, cpus: &CpuList) -> Result<Comings, Deaf> {
        let policies = Policies::listen(root, cpus);
        let calls = if policies.is_ok() { &[] } else { &CALLS[..] };
        let mut comings = Comings { points: Vec::new(), policies };
        for &(point, filter) in TASKS.iter().chain(calls) {
            let folders = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
            let id = folders
                .iter()
                .find_map(|folder| root.number(format!("{folder}/events/{point}/id")))
                .ok_or(Deaf::Missing(point))?;
            for cpu in cpus.iter() {
                let heard = perf::tracepoint(id, cpu, filter);
                let heard = heard.map_err(|e| Deaf::Refused(point, e))?;
                let noted = Mapping::to_read(&heard, PAGES);
                let noted = noted.map_err(|e| Deaf::Refused(point, e))?;
                comings.points.push((heard, noted));
            }
        }
        Ok(comings)
    }

    /// Why all system calls of all tasks take a little longer as long as something is heard; none
    /// where they do not.
    pub fn slows_calls(&self) -> Option<&Unprobed> {
        self.policies.as_ref().err()
    }

    /// Waits until something is heard, or `other` can be read, at most so long. Whether something
    /// was heard.
    pub fn wait(&self, at_most: Nanos, other: Option<BorrowedFd<'_>>) -> bool {
        let points = self.points.iter().map(|(file, _)| file.as_raw_fd());
        let policies = self.policies.iter().map(AsRawFd::as_raw_fd);
        let others = other.iter().map(AsRawFd::as_raw_fd);
        let ready = poll(others.chain(points).chain(policies), at_most);
        let heard = ready[other.iter().len()..].contains(&true);
        if let (true, Ok(policies)) = (heard, &self.policies) {
            policies.note();
        }
        heard
    }
}

/// Waits until `other` can be read, at most so long.
pub fn wait_for(other: Option<BorrowedFd<'_>>, at_most: Nanos) {
    poll(other.iter().map(AsRawFd::as_raw_fd), at_most);
}

/// Waits until one of these can be read, at most so long. Which can be.
fn poll(files: impl Iterator<Item = RawFd>, at_most: Nanos) -> Vec<bool> {
    let event = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut all: Vec<libc::pollfd> = files.map(event).collect();
    let (count, patience) = (all.len() as libc::nfds_t, timespec(at_most));
    // SAFETY: so many pollfds, valid to write to; the time outlives the call; no signal mask.
    let ready =
        unsafe { libc::ppoll(all.as_mut_ptr(), count, &raw const patience, std::ptr::null()) };
    all.iter().map(|one| ready > 0 && one.revents != 0).collect()
}

/// The threads of programs that have a real-time policy now, the calling one not among them.
/// Threads of the kernel, and those that have ended, have no program.
pub fn realtime() -> io::Result<Vec<RealTimeTask>> {
    let ours = sched::thread_id();
    let mut tasks = Vec::new();
    for process in numbered(Path::new("/proc"))? {
        // A process may have ended since it was listed.
        for thread in numbered(&process.join("task")).unwrap_or_default() {
            let id = number(&thread).unwrap_or(0);
            if let Some(priority) = sched::realtime_priority(id)
                && id != ours
                && has_program(&thread)
            {
                let name = std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
                let (process, name) = (number(&process).unwrap_or(0), name.trim().to_owned());
                tasks.push(RealTimeTask { id, process, name, priority });
            }
        }
    }
    tasks.sort_by_key(|task| task.id);
    Ok(tasks)
}

/// Whether a thread is one of a program, as those of the kernel are not.
fn has_program(thread: &Path) -> bool {
    let program = std::fs::read_link(thread.join("exe"));
    !program.is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
}

/// What in this folder is a number.
pub(crate) fn numbered(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| number(path).is_some()).collect())
}

pub(crate) fn number(path: &Path) -> Option<i32> {
    path.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_while_it_has_a_real_time_policy() {
        let (has, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let task = scope.spawn(|| {
                let allowed = sched::set_policy(sched::Policy::Rr(1)).is_ok();
                has.wait();
                go_on.wait();
                (allowed, sched::thread_id())
            });
            has.wait();
            let meanwhile = realtime().unwrap();
            go_on.wait();
            let (allowed, id) = task.join().unwrap();
            let found = meanwhile.iter().find(|task| task.id == id);
            let process = i32::try_from(std::process::id()).unwrap();
            assert_eq!(
                found.map(|task| (task.process, task.priority)),
                allowed.then_some((process, 1))
            );
        });
    }

    #[test]
    fn who_can_hear_nothing_says_what_would_help() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let deaf = Comings::listen(&root, &"0".parse().unwrap()).unwrap_err().to_string();
        assert!(deaf.contains("mount -t tracefs"), "{deaf}");
    }
}
