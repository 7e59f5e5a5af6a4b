//! The outcome of a job array: the records that its tasks have left, or why there are none.

use crate::commands::study::folder::CellResult;
use crate::study::slurm::{self, ArrayTask};
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result, failed};
use latlab_sys::clock;
use std::collections::BTreeMap;
use std::path::Path;

/// Longest wait for records, which a shared file system may show late.
const PATIENCE: Nanos = Nanos::from_secs(20);

/// An array that has ended, or is no longer waited for.
pub(super) struct FinishedArray<'a> {
    job: &'a str,
    /// The tasks by their numbers, each in the state in which it was last seen.
    tasks: BTreeMap<usize, ArrayTask>,
    /// The folder of the tasks' output.
    output: &'a Path,
    /// Time at which waiting for records stops.
    deadline: Nanos,
}

impl<'a> FinishedArray<'a> {
    pub(super) fn new(
        job: &'a str,
        tasks: BTreeMap<usize, ArrayTask>,
        output: &'a Path,
    ) -> FinishedArray<'a> {
        FinishedArray { job, tasks, output, deadline: clock::now() + PATIENCE }
    }

    /// Returns the records that the task with this number has left, read by `load`, or why there
    /// are none. Fails where `load` does: the user has asked for the end.
    pub(super) fn collect(
        &self,
        number: usize,
        load: &mut dyn FnMut() -> Result<CellResult>,
    ) -> Result<CellResult> {
        let task_id = format!("its job {}_{number}", self.job);
        let without_record = |why: &str| failed(&task_id, why);
        match self.tasks.get(&number) {
            Some(task) if task.is_complete() => {
                let missing = |e: Failure| {
                    let why = format!("{e}; do all nodes share the folder of --out?");
                    failed(&format!("{task_id} has left no record"), why)
                };
                Ok(self.wait_for(load)?.map_err(missing))
            }
            Some(task) if task.has_ended() => Ok(Err(without_record(&self.end_of(number, task)))),
            Some(task) if !task.is_pending() => {
                Ok(load()?.map_err(|_| without_record("Slurm does not say how it ended")))
            }
            None if self.tasks.is_empty() => {
                Ok(load()?.map_err(|_| without_record("Slurm does not say how it ended")))
            }
            // Slurm forgets a task that is cancelled before it begins.
            Some(_) | None => Ok(load()?.map_err(|_| without_record("cancelled before it began"))),
        }
    }

    /// Reads records until they are there or the deadline has passed.
    fn wait_for(&self, load: &mut dyn FnMut() -> Result<CellResult>) -> Result<CellResult> {
        loop {
            let loaded = load()?;
            if loaded.is_ok() || clock::now() >= self.deadline {
                return Ok(loaded);
            }
            let _ = clock::sleep_for(Nanos::from_millis(500));
        }
    }

    /// Describes how a task ended that did not complete: its state and reason in Slurm's words, its
    /// node, and the last line of its output.
    fn end_of(&self, number: usize, task: &ArrayTask) -> String {
        let ArrayTask { state, reason, node, .. } = task;
        // A cancelled task keeps the reason for which it was pending.
        let no_reason = reason == "None" || state == "CANCELLED";
        let reason = if no_reason { String::new() } else { format!(" ({reason})") };
        let node = if node.is_empty() { String::new() } else { format!(" on {node}") };
        let output = self.output.join(format!("{}_{number}.txt", self.job));
        let output = std::fs::read(output).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let last_line = match slurm::last_line(&output) {
            "" => String::new(),
            line => format!("; last line: {}", line.strip_prefix("latlab: ").unwrap_or(line)),
        };
        format!("{state}{reason}{node}{last_line}")
    }
}
