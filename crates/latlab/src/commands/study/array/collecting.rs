//! Collecting what the tasks of an array have left.

use crate::commands::study::kept::Measured;
use crate::failure::{Result, failed};
use crate::slurm::{self, Task};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use std::path::Path;

/// What a task has left, or why there is nothing. A shared file system may show it late. Fails where
/// `record` does: nobody wants to know any more.
pub(super) fn collected(
    job: &str,
    number: usize,
    task: Option<&Task>,
    output: &Path,
    patience: Patience,
    record: &mut dyn FnMut() -> Result<Measured>,
) -> Result<Measured> {
    let its_job = format!("its job {job}_{number}");
    match task {
        Some(task) if task.is_complete() => loop {
            match record()? {
                Err(_) if patience.is_left() => drop(clock::sleep_for(Nanos::from_millis(500))),
                there => {
                    let why = "do all nodes share the folder of --out?";
                    let lacks = |e| failed(&format!("{its_job} has left no record"), e);
                    return Ok(there.map_err(|e| lacks(format!("{e}; {why}"))));
                }
            }
        },
        Some(task) if task.has_ended() => Ok(Err(failed(&its_job, end(task, output)))),
        Some(task) if task.waits() => {
            Ok(record()?.map_err(|_| failed(&its_job, "cancelled before it began")))
        }
        _ => Ok(record()?.map_err(|_| failed(&its_job, "Slurm does not say how it ended"))),
    }
}

/// Until when to wait for records.
#[derive(Clone, Copy)]
pub(super) struct Patience(Nanos);

impl Patience {
    /// From now on.
    pub(super) fn begin() -> Patience {
        Patience(clock::now() + Nanos::from_secs(20))
    }

    fn is_left(self) -> bool {
        clock::now() < self.0
    }
}

/// How a task has ended that did not do what it was to do: Slurm's words, and its own last ones.
fn end(task: &Task, output: &Path) -> String {
    let Task { state, reason, node, .. } = task;
    // What is cancelled keeps the reason for which it waited.
    let no_reason = reason == "None" || state == "CANCELLED";
    let reason = if no_reason { String::new() } else { format!(" ({reason})") };
    let node = if node.is_empty() { String::new() } else { format!(" on {node}") };
    let said = std::fs::read(output).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let said = match slurm::last_line(&said) {
        "" => String::new(),
        line => format!("; it said last: {}", line.strip_prefix("latlab: ").unwrap_or(line)),
    };
    format!("{state}{reason}{node}{said}")
}
