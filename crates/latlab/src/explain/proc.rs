//! Tasks in /proc: their threads, names and states.

use crate::failure::{Failure, Result, failed};
use latlab_sys::root::Root;

/// Whether a task with this name runs now.
pub(super) fn has_task_named(name: &str) -> bool {
    let root = Root::default();
    let processes = root.names("proc").into_iter().filter(|process| process.parse::<u32>().is_ok());
    { processes }.any(|process| {
        let threads = root.names(format!("proc/{process}/task"));
        let comm = |thread: String| root.text(format!("proc/{process}/task/{thread}/comm"));
        { threads }.into_iter().filter_map(comm).any(|comm| comm.trim_end_matches('\n') == name)
    })
}

/// Whether a program has a real-time task now, except for latlab itself.
pub(super) fn has_realtime_task() -> bool {
    let machine = latlab_sys::machine::read(&Root::default());
    machine.scheduling.rt_threads.iter().any(|thread| !thread.kernel)
}

/// All threads of a process; of a thread, only itself.
pub(crate) fn threads(pid: u32) -> Result<Vec<u32>> {
    let root = Root::default();
    let all = root.names(format!("proc/{pid}/task"));
    let all: Vec<u32> = all.iter().filter_map(|name| name.parse().ok()).collect();
    // For a thread id, /proc lists the threads of its process, too.
    match all.is_empty() {
        true => Err(unlisted(pid)),
        false if process_of(pid) == Some(pid) => Ok(all),
        false => Ok(vec![pid]),
    }
}

/// Why no threads of a process are listed: it does not exist, or its folder can't be read.
fn unlisted(pid: u32) -> Failure {
    let name = format!("--pid {pid}");
    match Root::default().text_of_task(format!("proc/{pid}/stat")) {
        Ok(None) => Failure::Failed(format!("{name}: there is no such task")),
        Ok(Some(_)) => Failure::Failed(format!("{name}: its threads can't be listed")),
        Err(e) => failed(&format!("{name}: its threads can't be listed"), e),
    }
}

/// The process of a thread.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    let status = Root::default().text(format!("proc/{thread}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Whether a process has ended: all of its threads have, or its id belongs to another one, which
/// began at another time. Its main thread may end before others.
pub(crate) fn has_process_ended(process: u32, start_time: Option<&str>) -> bool {
    let is_same =
        stat(process).is_none_or(|fields| fields.get(START).map(String::as_str) == start_time);
    let threads = threads(process).unwrap_or_else(|_| vec![process]);
    !is_same || threads.into_iter().all(has_ended)
}

/// The folder below `/` that describes the memory and the files of a process. A main thread that has
/// ended has none, while other threads may.
pub(crate) fn folder(process: u32) -> String {
    let alive = |thread: &u32| !has_ended(*thread);
    let others = || threads(process).unwrap_or_default().into_iter();
    match alive(&process).then_some(process).or_else(|| others().find(alive)) {
        Some(thread) if thread != process => format!("proc/{process}/task/{thread}"),
        _ => format!("proc/{process}"),
    }
}

/// Start time of a task by the kernel's clock, which tells it from a later task with the same id.
/// None if there is no such task.
pub(crate) fn start_time(task: u32) -> Option<String> {
    stat(task)?.into_iter().nth(START)
}

/// Whether a thread has ended, even if its exit code has not been read yet.
fn has_ended(thread: u32) -> bool {
    stat(thread)
        .is_some_and(|fields| matches!(fields.first().map(String::as_str), None | Some("Z" | "X")))
}

/// Whether a thread has a real-time policy or `SCHED_DEADLINE`.
pub(crate) fn is_realtime(thread: u32) -> bool {
    let policy = stat(thread).and_then(|fields| fields.get(POLICY)?.parse().ok());
    matches!(policy, Some(1 | 2 | 6))
}

/// Whether a task is one of the kernel's, without a program.
pub(crate) fn is_of_kernel(task: u32) -> bool {
    /// `PF_KTHREAD` of `linux/sched.h`.
    const KERNEL_THREAD: u64 = 0x0020_0000;
    let flags = stat(task).and_then(|fields| fields.get(FLAGS)?.parse().ok());
    flags.is_some_and(|flags: u64| flags & KERNEL_THREAD != 0)
}

/// The place of the flags among the fields that [`stat`] returns.
const FLAGS: usize = 6;
/// The place of the scheduling policy among the fields that [`stat`] returns.
const POLICY: usize = 38;
/// The place of the start time among the fields that [`stat`] returns.
const START: usize = 19;

/// The fields of `/proc/PID/stat` from the state (field 3) on: none of them if there is no such
/// task. None if they can't be read, which says nothing: too many files may be open.
fn stat(task: u32) -> Option<Vec<String>> {
    let stat = Root::default().text_of_task(format!("proc/{task}/stat")).ok()?.unwrap_or_default();
    // The name before them may contain blanks and parentheses.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_of_the_kernel_is_told_from_a_program() {
        assert!(!is_of_kernel(std::process::id()));
        // In a container there are none.
        let name = Root::default().text("proc/2/comm");
        assert_eq!(is_of_kernel(2), name.as_deref() == Some("kthreadd"));
    }

    #[test]
    fn process_has_ended_if_its_id_is_free_or_belongs_to_another() {
        let own = std::process::id();
        let start = start_time(own);
        assert!(start.is_some());
        assert!(!has_process_ended(own, start.as_deref()));
        assert!(has_process_ended(own, Some("1")));
        assert!(has_process_ended(u32::MAX, start.as_deref()));
    }
}
