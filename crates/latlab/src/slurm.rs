//! Slurm: an array of jobs, handed in, looked at, and taken back, by Slurm's own commands.

use crate::failure::{Failure, Result, failed};
use latlab_sys::process::{self, Running};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// What is to be done many times.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    /// What Slurm shows it as.
    pub(crate) name: &'a str,
    /// What each task runs: words of a command, which finds its own number in [`NUMBER`].
    pub(crate) words: &'a [String],
    /// The numbers of the tasks.
    pub(crate) numbers: &'a [usize],
    /// How many CPUs each is given.
    pub(crate) cpus: u16,
    /// The folder where each writes what it says, which all nodes share.
    pub(crate) folder: &'a Path,
}

/// Stands for the number of the task among [`Order::words`].
pub(crate) const NUMBER: &str = "$SLURM_ARRAY_TASK_ID";

/// An array of jobs that was handed in.
#[derive(Debug)]
pub(crate) struct Array {
    /// Slurm's number.
    pub(crate) job: String,
}

/// A task of an array, as Slurm last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// Its number in the array.
    pub(crate) number: usize,
    /// Slurm's word for where it stands: `PENDING`, `COMPLETED`.
    pub(crate) state: String,
    /// Slurm's word for why it is in that state.
    pub(crate) reason: String,
    /// The node it runs or ran on; empty before.
    pub(crate) node: String,
}

/// What Slurm says of an array.
#[derive(Debug)]
pub(crate) enum Seen {
    /// These are its tasks.
    Tasks(Vec<Task>),
    /// All of them ended long ago.
    Forgotten,
    /// Nothing, and why.
    Silence(String),
}

impl Array {
    /// Hands the order in. It is not begun again by itself where a node dies, so that whoever
    /// waits for it hears of that.
    pub(crate) fn submit(order: &Order<'_>) -> Result<Array> {
        let numbers: Vec<String> = order.numbers.iter().map(ToString::to_string).collect();
        // Slurm puts numbers in the place of % and what follows.
        let folder = order.folder.display().to_string().replace('%', "%%");
        let mut command = tool("sbatch");
        command.args(["--parsable", "--no-requeue"]);
        command.arg(format!("--job-name={}", order.name));
        command.arg(format!("--array={}", numbers.join(",")));
        command.arg(format!("--cpus-per-task={}", order.cpus));
        command.arg(format!("--output={folder}/%A_%a.txt"));
        command.arg(format!("--chdir={}", order.folder.display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let said = said(&mut command, &script(order.words))?;
        if !said.well {
            return Err(refusal(&said.complaint));
        }
        // The number, and on a cluster of several a semicolon and the name of that.
        let job = said.answer.trim().split(';').next().unwrap_or_default().to_owned();
        if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(failed("sbatch", format!("it answered '{}'", said.answer.trim())));
        }
        Ok(Array { job })
    }

    /// Where its tasks stand, those that ended a short while ago included.
    pub(crate) fn look(&self) -> Seen {
        let mut command = tool("squeue");
        command.args(["--noheader", "--array", "--states=all", "--format=%K|%T|%r|%N"]);
        command.arg(format!("--jobs={}", self.job));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match said(&mut command, "") {
            Ok(said) if said.well => {
                let tasks = tasks(&said.answer);
                if tasks.is_empty() { Seen::Forgotten } else { Seen::Tasks(tasks) }
            }
            Ok(said) if said.complaint.contains("Invalid job id") => Seen::Forgotten,
            Ok(said) => Seen::Silence(last_line(&said.complaint).to_owned()),
            Err(failure) => Seen::Silence(failure.to_string()),
        }
    }

    /// Has Slurm end what has not ended.
    pub(crate) fn cancel(&self) -> Result<()> {
        let mut command = tool("scancel");
        command.arg(&self.job).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let said = said(&mut command, "")?;
        if said.well { Ok(()) } else { Err(failed("scancel", last_line(&said.complaint))) }
    }
}

impl Task {
    /// Whether it will not go on.
    pub(crate) fn has_ended(&self) -> bool {
        const ENDED: [&str; 10] = [
            "BOOT_FAIL",
            "CANCELLED",
            "COMPLETED",
            "DEADLINE",
            "FAILED",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "PREEMPTED",
            "REVOKED",
            "TIMEOUT",
        ];
        ENDED.contains(&self.state.as_str())
    }

    /// One of which no more is known than that it was handed in.
    pub(crate) fn waiting() -> Task {
        let [reason, node] = [String::new(), String::new()];
        Task { number: 0, state: "PENDING".to_owned(), reason, node }
    }

    /// Whether it has not begun.
    pub(crate) fn waits(&self) -> bool {
        self.state == "PENDING"
    }

    /// Whether it did what it was to do.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == "COMPLETED"
    }
}

/// The last line of a text in which something stands.
pub(crate) fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// The tasks in what squeue wrote.
fn tasks(answer: &str) -> Vec<Task> {
    let task = |line: &str| {
        let mut fields = line.trim().split('|').map(str::to_owned);
        let number = fields.next()?.parse().ok()?;
        let (state, reason) = (fields.next()?, fields.next()?);
        Some(Task { number, state, reason, node: fields.next().unwrap_or_default() })
    };
    answer.lines().filter_map(task).collect()
}

/// What each task runs: the words, each as one, whatever is in it.
fn script(words: &[String]) -> String {
    let quoted = |word: &String| match word.as_str() {
        NUMBER => format!("\"{NUMBER}\""),
        word => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words: Vec<String> = words.iter().map(quoted).collect();
    format!("#!/bin/sh\nexec {}\n", words.join(" "))
}

/// What a command of Slurm said.
struct Said {
    well: bool,
    answer: String,
    complaint: String,
}

/// One of Slurm's commands. Ctrl-C is for us to hear.
fn tool(name: &str) -> Command {
    let mut command = process::sheltered(name);
    command.env("LC_ALL", "C");
    command
}

/// Runs a command to its end.
fn said(command: &mut Command, input: &str) -> Result<Said> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut running = Running::start(command).map_err(|e| missing(&name, &e))?;
    let child = running.child();
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let read = |pipe: Option<&mut dyn std::io::Read>| {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |pipe| pipe.read_to_end(&mut bytes)).map_err(|e| failed(&name, e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    // What they complain of fits in a pipe.
    let answer = read(child.stdout.as_mut().map(|pipe| pipe as &mut dyn std::io::Read))?;
    let complaint = read(child.stderr.as_mut().map(|pipe| pipe as &mut dyn std::io::Read))?;
    let status = child.wait().map_err(|e| failed(&name, e))?;
    Ok(Said { well: status.success(), answer, complaint })
}

fn missing(name: &str, error: &std::io::Error) -> Failure {
    if error.kind() == ErrorKind::NotFound {
        return Failure::Unsupported(format!(
            "there is no Slurm here: {name} is missing; its commands are in Debian's slurm-client \
             (apt-get install slurm-client), and the cluster's slurm.conf is to be in /etc/slurm"
        ));
    }
    failed(name, error)
}

/// Why sbatch did not take an order.
fn refusal(complaint: &str) -> Failure {
    let why = last_line(complaint);
    let no_cluster = ["configuration source", "configuration file", "contact slurm controller"];
    if no_cluster.iter().any(|words| complaint.contains(words)) {
        let what = "Slurm's commands are here, but no cluster answers";
        return Failure::Unsupported(format!("{what}: {why}; see SLURM_CONF and sinfo"));
    }
    Failure::Failed(format!("Slurm refuses the array job: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_writes_is_read() {
        let tasks = tasks("3|COMPLETED|None|n1\n20|PENDING|Resources|\n7|RUNNING|None|n2\n\n");
        let ended: Vec<_> = tasks.iter().map(|task| (task.number, task.has_ended())).collect();
        assert_eq!(ended, [(3, true), (20, false), (7, false)]);
        assert!(tasks[0].is_complete() && tasks[1].node.is_empty());
        assert_eq!(tasks[1].reason, "Resources");
        assert_eq!(last_line("a\nlatlab: b\n\n"), "latlab: b");
    }

    #[test]
    fn each_word_stays_one_word() {
        let words = ["/a b/latlab", "it's", NUMBER].map(str::to_owned);
        let script = script(&words);
        assert_eq!(script, "#!/bin/sh\nexec '/a b/latlab' 'it'\\''s' \"$SLURM_ARRAY_TASK_ID\"\n");
    }

    #[test]
    fn what_is_wrong_with_the_order_is_not_what_is_wrong_with_the_cluster() {
        let said = "sbatch: error: invalid partition specified: x\n\
                    sbatch: error: Batch job submission failed: Invalid partition name specified\n";
        assert!(matches!(refusal(said), Failure::Failed(why) if why.ends_with("name specified")));
        let said = "sbatch: error: Batch job submission failed: Unable to contact slurm controller \
                    (connect failure)\n";
        assert!(matches!(refusal(said), Failure::Unsupported(_)));
    }
}
