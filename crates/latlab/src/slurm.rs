//! Slurm: an array of jobs, handed in, looked at, and taken back, by Slurm's own commands.

mod command;

use self::command::{refusal, said, tool};
use crate::failure::{Result, failed};
use std::path::Path;
use std::process::Stdio;

/// What is to be done many times.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    /// What Slurm shows it as, after [`OURS`].
    pub(crate) name: &'a str,
    /// What each task runs: words of a command, which finds its own number in [`NUMBER`].
    pub(crate) words: &'a [String],
    /// The numbers of the tasks.
    pub(crate) numbers: &'a [usize],
    /// How many CPUs each is given.
    pub(crate) cpus: u16,
    /// The folder that paths among the words, and in what they name, are meant from.
    pub(crate) from: &'a Path,
    /// The folder where each writes what it says, which all nodes share, and by which the array is
    /// found again.
    pub(crate) folder: &'a Path,
}

/// Stands for the number of the task among [`Order::words`].
pub(crate) const NUMBER: &str = "$SLURM_ARRAY_TASK_ID";

/// What the names of our arrays begin with.
const OURS: &str = "latlab-";

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
        command.arg(format!("--job-name={OURS}{}", order.name));
        command.arg(format!("--array={}", numbers.join(",")));
        command.arg(format!("--cpus-per-task={}", order.cpus));
        command.arg(format!("--output={folder}/%A_%a.txt"));
        command.arg(format!("--chdir={}", order.folder.display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let said = said(&mut command, &script(order.from, order.words))?;
        if !said.well {
            return Err(refusal("Slurm refuses the array job", &said.complaint));
        }
        // The number, and on a cluster of several a semicolon and the name of that.
        let job = said.answer.trim().split(';').next().unwrap_or_default().to_owned();
        if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(failed("sbatch", format!("it answered '{}'", said.answer.trim())));
        }
        Ok(Array { job })
    }

    /// The array of ours for this folder that has not ended, the newest if there are several. What
    /// else the user has at work there is none of it. Fails where Slurm does not say.
    pub(crate) fn at_work(folder: &Path) -> Result<Option<Array>> {
        let mut command = tool("squeue");
        // Of the name as much as ours begin with: the rest may be anything.
        command.args(["--me", "--noheader", "--states=all", "--format=%F|%T|%K|%7j|%Z"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let said = said(&mut command, "")?;
        if !said.well {
            return Err(refusal("Slurm does not say which jobs there are", &said.complaint));
        }
        Ok(in_folder(&said.answer, &folder.display().to_string()).map(|job| Array { job }))
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
        ended(&self.state)
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

/// Whether who is in this state will not go on.
fn ended(state: &str) -> bool {
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
    ENDED.contains(&state)
}

/// The number of the newest array of ours for this folder that has not ended, in what squeue wrote.
fn in_folder(answer: &str, folder: &str) -> Option<String> {
    let number = |line: &str| {
        let mut fields = line.trim().splitn(5, '|');
        let (job, state) = (fields.next()?.parse::<u64>().ok()?, fields.next()?);
        let is_array = fields.next()? != "N/A";
        let is_ours = is_array && fields.next()? == OURS && fields.next()? == folder;
        (is_ours && !ended(state)).then_some(job)
    };
    answer.lines().filter_map(number).max().map(|job| job.to_string())
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

/// What each task runs: the words, each as one, whatever is in it. A node that lacks the folder has
/// nothing that is meant from there either.
fn script(from: &Path, words: &[String]) -> String {
    let quoted = |word: &str| match word {
        NUMBER => format!("\"{NUMBER}\""),
        word => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let from = quoted(&from.display().to_string());
    format!("#!/bin/sh\ncd {from}\nexec {}\n", words.join(" "))
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
    fn the_array_of_a_folder_is_found_while_it_is_at_work() {
        let answer = "7|RUNNING|1|latlab-|/a/slurm\n9|COMPLETED|2|latlab-|/a/slurm\n\
                      8|PENDING|3-9,11|latlab-|/a/slurm\n11|RUNNING|1|latlab-|/a/slurm|b\n\
                      12|RUNNING|1|latlab-|/a\n13|RUNNING|N/A|latlab-|/a/slurm\n\
                      14|RUNNING|1|bash   |/a/slurm\n";
        assert_eq!(in_folder(answer, "/a/slurm").as_deref(), Some("8"));
        assert_eq!(in_folder(answer, "/a/slurm|b").as_deref(), Some("11"));
        assert_eq!(in_folder(answer, "/b"), None);
    }

    #[test]
    fn each_word_stays_one_word() {
        let words = ["/a b/latlab", "it's", NUMBER].map(str::to_owned);
        let script = script(Path::new("/it's here"), &words);
        let (cd, words) = script.split_once("\nexec").expect("it runs them");
        assert_eq!(cd, "#!/bin/sh\ncd '/it'\\''s here'");
        assert_eq!(words, " '/a b/latlab' 'it'\\''s' \"$SLURM_ARRAY_TASK_ID\"\n");
    }
}
