//! Events of real-time tasks: a task of real-time policy has started or ended, or a policy was set.
//!
//! The kernel's tracepoints and a kprobe report that something has changed; /proc then says which
//! real-time tasks there are.

mod policies;

pub use policies::KprobeError;

use crate::mapping::{Mapping, Sealed};
use crate::memory::page_size;
use crate::poll::{self, Interest};
use crate::procfs::{number, numbered};
use crate::root::Root;
use crate::{perf, procfs, sched};
use latlab_core::cpulist::CpuList;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_mechanism::RealTimeTask;
use policies::Policies;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

/// Listens, on some CPUs, for every event by which a task may get or lose a real-time policy. The
/// kernel filters: `SCHED_OTHER` tasks do not wake the listener, except those that set a policy, as
/// each new kernel thread does.
#[derive(Debug)]
pub struct RtTaskEvents {
    /// Each tracepoint with its ring buffer, which is not read; without one it wakes nobody.
    points: Vec<(File, Sealed)>,
    /// Reports every policy that is set; where the kernel has no such probe, tracepoints do.
    policies: Result<Policies, KprobeError>,
}

/// Why real-time tasks can't be followed, and what would help.
#[derive(Debug, thiserror::Error)]
pub enum RtTaskEventsError {
    /// The tracepoint does not exist, or tracefs is not mounted.
    #[error(
        "tracefs is not mounted, or this kernel has no tracepoint {0}: run `mount -t tracefs \
         tracefs /sys/kernel/tracing`"
    )]
    Missing(&'static str),
    /// The tracepoint can't be opened.
    #[error(
        "the tracepoint {0} can't be opened ({1}): this needs root and a kernel with perf events"
    )]
    Refused(&'static str, io::Error),
}

/// Real-time tasks have a number below this (`MAX_RT_PRIO`).
const REALTIME: Option<&str> = Some("prio < 100");

/// The name and the filter of a tracepoint.
type Point = (&'static str, Option<&'static str>);

/// Tasks of real-time policy that are forked, and that end.
const TASKS: [Point; 2] =
    [("sched/sched_wakeup_new", REALTIME), ("sched/sched_process_exit", REALTIME)];

/// The system calls that set a policy, except those of 32-bit programs. While any tracepoint of a
/// system call is enabled, all system calls of all tasks take the slower path through the kernel.
const CALLS: [Point; 2] =
    [("syscalls/sys_exit_sched_setscheduler", None), ("syscalls/sys_exit_sched_setattr", None)];

impl RtTaskEvents {
    /// Starts to listen on these CPUs.
    pub fn listen(root: &Root, cpus: &CpuList) -> Result<RtTaskEvents, RtTaskEventsError> {
        let policies = Policies::listen(root, cpus);
        let calls = if policies.is_ok() { &[] } else { &CALLS[..] };
        let mut events = RtTaskEvents { points: Vec::new(), policies };
        for point in TASKS.iter().chain(calls) {
            events.listen_to(root, cpus, *point)?;
        }
        Ok(events)
    }

    fn listen_to(
        &mut self,
        root: &Root,
        cpus: &CpuList,
        (point, filter): Point,
    ) -> Result<(), RtTaskEventsError> {
        let id = ["sys/kernel/tracing", "sys/kernel/debug/tracing"]
            .iter()
            .find_map(|folder| root.number(format!("{folder}/events/{point}/id")))
            .ok_or(RtTaskEventsError::Missing(point))?;
        let refused = |e| RtTaskEventsError::Refused(point, e);
        // One page for the kernel's position, and one for its events, in a ring.
        let pages = Bytes(2 * page_size() as u64);
        for cpu in cpus.iter() {
            let file = perf::tracepoint(id, cpu, filter).map_err(refused)?;
            let buffer = Mapping::read_only(&file, pages).map_err(refused)?;
            self.points.push((file, buffer));
        }
        Ok(())
    }

    /// Why all system calls of all tasks are slower while this listens; None where they are not.
    pub fn slows_calls(&self) -> Option<&KprobeError> {
        self.policies.as_ref().err()
    }

    /// Waits until there is an event, or `other` is readable, at most this long. Returns whether
    /// there was an event.
    pub fn wait(&self, at_most: Nanos, other: Option<BorrowedFd<'_>>) -> bool {
        let points = self.points.iter().map(|(file, _)| file.as_fd());
        let policies = self.policies.iter().map(Policies::as_fd);
        let all: Vec<_> = other.into_iter().chain(points).chain(policies).collect();
        let ready = readable(&all, at_most);
        let event = ready[other.iter().len()..].contains(&true);
        if let (true, Ok(policies)) = (event, &self.policies) {
            policies.clear();
        }
        event
    }
}

/// Waits until `other` is readable, at most this long.
pub fn wait_for(other: Option<BorrowedFd<'_>>, at_most: Nanos) {
    readable(other.as_slice(), at_most);
}

/// Waits until one of these is readable, at most this long. Returns which are; none where the wait
/// failed.
fn readable(files: &[BorrowedFd<'_>], at_most: Nanos) -> Vec<bool> {
    let all: Vec<_> = files.iter().map(|fd| (*fd, Interest::Reading)).collect();
    poll::wait(&all, Some(at_most)).unwrap_or_else(|_| vec![false; all.len()])
}

/// The threads of programs that have a real-time policy now, except the calling thread. Kernel
/// threads, and threads that have ended, belong to no program.
pub fn realtime_tasks() -> io::Result<Vec<RealTimeTask>> {
    let ours = sched::thread_id();
    let mut tasks = Vec::new();
    for process in numbered(Path::new("/proc"))? {
        let threads = match numbered(&process.join("task")) {
            // It has ended since it was listed.
            Err(error) if procfs::is_gone(&error) => continue,
            threads => threads?,
        };
        for thread in threads {
            let id = number(&thread).unwrap_or(0);
            if let Some(priority) = sched::realtime_priority(id)?
                && id != ours
                && has_program(&thread)
            {
                let name = procfs::name(id).unwrap_or_default();
                tasks.push(RealTimeTask {
                    id,
                    process: number(&process).unwrap_or(0),
                    name,
                    priority,
                });
            }
        }
    }
    tasks.sort_by_key(|task| task.id);
    Ok(tasks)
}

/// Whether a thread executes a program, which kernel threads do not.
fn has_program(thread: &Path) -> bool {
    let program = std::fs::read_link(thread.join("exe"));
    !program.is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rt_tasks_are_found_while_they_have_a_real_time_policy() {
        let (has, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let task = scope.spawn(|| {
                let allowed = sched::set_policy(sched::Policy::Rr(1)).is_ok();
                has.wait();
                go_on.wait();
                (allowed, sched::thread_id())
            });
            has.wait();
            let listed = realtime_tasks().unwrap();
            go_on.wait();
            let (allowed, id) = task.join().unwrap();
            let found = listed.iter().find(|task| task.id == id);
            let process = i32::try_from(std::process::id()).unwrap();
            assert_eq!(
                found.map(|task| (task.process, task.priority)),
                allowed.then_some((process, 1))
            );
            if !allowed {
                latlab_testing::not_run(
                    latlab_testing::Missing::Required,
                    "real-time policies can't be set",
                );
            }
        });
    }

    #[test]
    fn rt_task_events_without_tracefs_say_what_would_help() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let error = RtTaskEvents::listen(&root, &"0".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("mount -t tracefs"), "{error}");
    }
}
