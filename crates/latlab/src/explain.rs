//! Explaining: says why wake-ups are late while they happen, of probes or of other tasks.

mod lanes;
mod others;
mod so_far;
mod summing;

pub(crate) use lanes::Lanes;
pub(crate) use others::Others;
pub(crate) use summing::Explanations;

use crate::failure::{Failure, Result, failed};
use latlab_bpf::{Recorder, RecorderError, Watch};
use latlab_core::explain::Window;
use latlab_core::plan::{ExplainPlan, Watched};
use latlab_core::time::Nanos;
use latlab_sys::root::Root;

/// A wake-up that was late.
struct Late {
    /// The probe, or the task's name.
    probe: String,
    cpu: u32,
    /// When it ran, on `CLOCK_MONOTONIC`.
    at: Nanos,
    /// When counting began.
    origin: Nanos,
    latency: Nanos,
    /// What happened meanwhile, where it was seen.
    window: Option<Window>,
}

/// Refuses what can't be explained here, before anything starts.
pub(crate) fn check(plan: &ExplainPlan) -> Result<()> {
    Recorder::check().map_err(|e| refused(&e))?;
    match &plan.watch {
        Some(Watched::Task(pid)) => threads(*pid).map(drop),
        _ => Ok(()),
    }
}

fn refused(error: &RecorderError) -> Failure {
    Failure::Unsupported(format!("explain: {error}"))
}

fn start(watch: &Watch, above: Nanos) -> Result<Recorder> {
    Recorder::start(watch, above).map_err(|e| refused(&e))
}

fn lost(error: std::io::Error) -> Failure {
    failed("the kernel's recording can't be read", error)
}

/// Whether there is a task of this name now.
fn is_anybody(name: &str) -> bool {
    let root = Root::default();
    let processes = root.names("proc").into_iter().filter(|process| process.parse::<u32>().is_ok());
    { processes }.any(|process| {
        let threads = root.names(format!("proc/{process}/task"));
        let comm = |thread: String| root.text(format!("proc/{process}/task/{thread}/comm"));
        { threads }.into_iter().filter_map(comm).any(|comm| comm.trim_end_matches('\n') == name)
    })
}

/// All threads of a process, or the thread itself.
fn threads(pid: u32) -> Result<Vec<u32>> {
    let root = Root::default();
    let all = root.names(format!("proc/{pid}/task"));
    let all: Vec<u32> = all.iter().filter_map(|name| name.parse().ok()).collect();
    // What is a thread but no process has the tasks of its process, too.
    let process = root.text(format!("proc/{pid}/status")).is_some_and(|status| {
        let tgid = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
        tgid.is_some_and(|tgid| tgid.trim() == pid.to_string())
    });
    match all.is_empty() {
        true => Err(Failure::Failed(format!("--pid {pid}: there is no such task"))),
        false if process => Ok(all),
        false => Ok(vec![pid]),
    }
}

/// Whether a thread is gone, or only its exit code is left for who started it.
fn has_ended(thread: u32) -> bool {
    matches!(stat(thread).first().map(String::as_str), None | Some("Z" | "X"))
}

/// When a task was started, by the kernel's own clock: one that gets the same number later is known
/// by that. None if there is no such task.
fn started(task: u32) -> Option<String> {
    stat(task).into_iter().nth(19)
}

/// What the kernel says of a task, from its state on (`/proc/PID/stat`, field 3).
fn stat(task: u32) -> Vec<String> {
    let stat = Root::default().text(format!("proc/{task}/stat")).unwrap_or_default();
    // The name before may have blanks and parentheses of its own.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_ascii_whitespace().map(str::to_owned).collect()
}
