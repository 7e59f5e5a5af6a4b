//! Tasks in /proc: their threads, names and states.

use latlab_check::Held;
use latlab_core::cpulist::CpuList;
use latlab_core::explain::Comm;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result, failed};
use latlab_sys::root::Root;
use std::time::Duration;

/// Whether a task with this name runs now.
pub(super) fn has_task_named(name: &str) -> bool {
    !named(name).is_empty()
}

/// Whether a program has a real-time task now, except for latlab itself.
pub(super) fn has_realtime_task() -> bool {
    let machine = latlab_sys::machine::read(&Root::default());
    machine.scheduling.rt_threads.iter().any(|thread| !thread.kernel)
}

/// All threads of a process; of a thread, only itself.
pub fn threads(pid: u32) -> Result<Vec<u32>> {
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
        Ok(None) => Failure::failed(format!("{name}: there is no such task")),
        Ok(Some(_)) => Failure::failed(format!("{name}: its threads can't be listed")),
        Err(e) => failed(&format!("{name}: its threads can't be listed"), e),
    }
}

/// The process of a thread.
pub fn process_of(thread: u32) -> Option<u32> {
    let status = Root::default().text(format!("proc/{thread}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Whether a process has ended: all of its threads have, or its id belongs to another one, which
/// began at another time. Its main thread may end before others.
pub fn has_process_ended(process: u32, start_time: Option<&str>) -> bool {
    let is_same =
        stat(process).is_none_or(|fields| fields.get(START).map(String::as_str) == start_time);
    let threads = threads(process).unwrap_or_else(|_| vec![process]);
    !is_same || threads.into_iter().all(has_ended)
}

/// The folder below `/` that describes the memory and the files of a process. A main thread that has
/// ended has none, while other threads may.
pub fn folder(process: u32) -> String {
    let alive = |thread: &u32| !has_ended(*thread);
    let others = || threads(process).unwrap_or_default().into_iter();
    match alive(&process).then_some(process).or_else(|| others().find(alive)) {
        Some(thread) if thread != process => format!("proc/{process}/task/{thread}"),
        _ => format!("proc/{process}"),
    }
}

/// Start time of a task by the kernel's clock. It distinguishes the task from a later one with the
/// same ID. None if there is no such task.
pub fn start_time(task: u32) -> Option<String> {
    stat(task)?.into_iter().nth(START)
}

/// How long ago a task started. None if there is no such task.
pub fn age(task: u32) -> Option<Duration> {
    /// Ticks per second in the times that the kernel reports to a program (`proc_pid_stat(5)`).
    const TICKS: f64 = 100.0;
    let uptime: f64 = Root::default().text("proc/uptime")?.split(' ').next()?.parse().ok()?;
    let started: f64 = start_time(task)?.parse().ok()?;
    Duration::try_from_secs_f64((uptime - started / TICKS).max(0.0)).ok()
}

/// Whether a thread has ended, even if its exit code has not been read yet.
fn has_ended(thread: u32) -> bool {
    stat(thread)
        .is_some_and(|fields| matches!(fields.first().map(String::as_str), None | Some("Z" | "X")))
}

/// Whether a thread has a real-time policy or `SCHED_DEADLINE`.
pub fn is_realtime(thread: u32) -> bool {
    let policy = stat(thread).and_then(|fields| fields.get(POLICY)?.parse().ok());
    matches!(policy, Some(1 | 2 | 6))
}

/// The policy of a thread, and its priority as the kernel numbers it.
pub fn scheduling(thread: u32) -> Option<(u8, i16)> {
    let fields = stat(thread)?;
    let policy = fields.get(POLICY)?.parse().ok()?;
    // The file has it without the 100 real-time priorities.
    let prio: i16 = fields.get(PRIORITY)?.parse().ok()?;
    Some((policy, prio.checked_add(100)?))
}

/// A thread of a process, with its name and priority. None if the process has no such thread.
pub fn thread_of(process: u32, thread: u32) -> Option<Held> {
    /// The places of the nice value and of the real-time priority among the fields that [`stat`] returns.
    const NICE: usize = 16;
    const REALTIME_PRIORITY: usize = 37;
    let folder = format!("proc/{process}/task/{thread}");
    let comm = Comm::from(Root::default().text(format!("{folder}/comm"))?.trim_end());
    let fields = stat_in(&folder)?;
    let field = |place: usize| fields.get(place)?.parse::<i16>().ok();
    let prio = match field(POLICY)? {
        1 | 2 => 99 - field(REALTIME_PRIORITY)?,
        6 => -1,
        _ => 120 + field(NICE)?,
    };
    Some(Held { comm, tid: thread, prio })
}

/// Whether a task is one of the kernel's, without a program.
pub fn is_of_kernel(task: u32) -> bool {
    /// `PF_KTHREAD` of `linux/sched.h`.
    const KERNEL_THREAD: u64 = 0x0020_0000;
    let flags = stat(task).and_then(|fields| fields.get(FLAGS)?.parse().ok());
    flags.is_some_and(|flags: u64| flags & KERNEL_THREAD != 0)
}

/// A thread's usage since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    /// CPU time, counted at ticks by some kernels.
    pub(super) ran: Nanos,
    /// How often it gave the CPU up by itself.
    pub(super) sleeps: u64,
    /// Page faults.
    pub(super) faults: u64,
}

/// What a thread has used; none if that can't be read.
pub(super) fn usage(thread: u32) -> Option<Usage> {
    let fields = stat(thread)?;
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let status = Root::default().text(format!("proc/{thread}/status"))?;
    let sleeps = field(&status, "voluntary_ctxt_switches:")?.parse().ok()?;
    let ticks = number(USER_TIME)? + number(SYSTEM_TIME)?;
    let faults = number(MINOR_FAULTS)? + number(MAJOR_FAULTS)?;
    Some(Usage { ran: Nanos(ticks.saturating_mul(TICK.0)), sleeps, faults })
}

/// The CPUs that a thread may use.
pub(super) fn allowed_cpus(thread: u32) -> Option<CpuList> {
    let status = Root::default().text(format!("proc/{thread}/status"))?;
    field(&status, "Cpus_allowed_list:")?.parse().ok()
}

/// All tasks of this name that there are now.
pub(super) fn named(name: &str) -> Vec<u32> {
    tasks(|thread| {
        let comm = Root::default().text(format!("proc/{thread}/comm"));
        comm.is_some_and(|comm| comm.trim_end_matches('\n') == name)
    })
}

/// All real-time tasks that there are now, except for the kernel's.
pub(super) fn realtime() -> Vec<u32> {
    tasks(|thread| is_realtime(thread) && !is_of_kernel(thread))
}

fn tasks(wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let root = Root::default();
    let processes = root.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let threads = processes.flat_map(|process| root.names(format!("proc/{process}/task")));
    threads.filter_map(|thread| thread.parse().ok()).filter(|thread| wanted(*thread)).collect()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Unit of times in `/proc/PID/stat`: `USER_HZ` is 100 on all architectures.
const TICK: Nanos = Nanos::from_millis(10);
/// Places of page faults and CPU times among the fields that [`stat`] returns.
const MINOR_FAULTS: usize = 7;
const MAJOR_FAULTS: usize = 9;
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;
/// The place of the flags among the fields that [`stat`] returns.
const FLAGS: usize = 6;
/// The place of the priority among the fields that [`stat`] returns.
const PRIORITY: usize = 15;
/// The place of the scheduling policy among the fields that [`stat`] returns.
const POLICY: usize = 38;
/// The place of the start time among the fields that [`stat`] returns.
const START: usize = 19;

/// The fields of `/proc/PID/stat` from the state (field 3) on: none of them if there is no such
/// task. None if they can't be read, which says nothing: too many files may be open.
fn stat(task: u32) -> Option<Vec<String>> {
    stat_in(&format!("proc/{task}"))
}

/// The same by the folder of the task.
fn stat_in(folder: &str) -> Option<Vec<String>> {
    let stat = Root::default().text_of_task(format!("{folder}/stat")).ok()?.unwrap_or_default();
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
    fn thread_of_the_tests_is_ordinary() {
        let own = std::process::id();
        let (policy, prio) = scheduling(own).expect("it runs");
        assert!(!is_realtime(own) && policy != 1 && (100..140).contains(&prio));
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
