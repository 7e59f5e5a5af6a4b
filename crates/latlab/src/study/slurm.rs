//! Job arrays of Slurm: submitted, monitored and cancelled by Slurm's own commands.

mod command;

use self::command::{CommandOutput, failure, run, slurm_command};
use latlab_part::failure::{Result, failed};
use std::path::Path;
use std::process::Stdio;

/// A job array to submit.
#[derive(Debug)]
pub struct ArraySpec<'a> {
    /// The name that Slurm shows, after [`NAME_PREFIX`].
    pub name: &'a str,
    /// The command of each task, word by word; [`TASK_NUMBER`] stands for the number of the task.
    pub command: &'a [String],
    /// The numbers of the tasks.
    pub numbers: &'a [usize],
    /// CPUs of each task.
    pub cpus: u16,
    /// The folder in which the command runs, and to which relative paths refer.
    pub working_directory: &'a Path,
    /// The folder of the tasks' output. All nodes share it, and the array is found by it.
    pub output: &'a Path,
}

/// The number of the task, as a word of [`ArraySpec::command`].
pub const TASK_NUMBER: &str = "$SLURM_ARRAY_TASK_ID";

/// The prefix of the names of latlab's arrays.
const NAME_PREFIX: &str = "latlab-";

/// A job array that was submitted.
#[derive(Debug)]
pub struct JobArray {
    /// Slurm's job number.
    pub job: String,
}

/// A task of an array, in the state in which Slurm last reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayTask {
    /// Its number in the array.
    pub number: usize,
    /// Slurm's name of its state, such as `PENDING` or `COMPLETED`.
    pub state: String,
    /// Slurm's name of the reason for that state.
    pub reason: String,
    /// The node on which it runs or ran; empty before it starts.
    pub node: String,
}

/// The state of an array.
#[derive(Debug)]
pub enum ArrayState {
    /// Slurm lists these tasks.
    Tasks(Vec<ArrayTask>),
    /// All tasks ended so long ago that Slurm no longer lists them.
    Forgotten,
    /// Slurm does not answer; the sentence says why.
    Unknown(String),
}

impl JobArray {
    /// Submits an array. A task is not requeued where its node fails, so that the failure is
    /// reported.
    pub fn submit(spec: &ArraySpec<'_>) -> Result<JobArray> {
        let numbers: Vec<String> = spec.numbers.iter().map(ToString::to_string).collect();
        // Slurm substitutes % and the letter that follows it.
        let output = spec.output.display().to_string().replace('%', "%%");
        let mut command = slurm_command("sbatch");
        command.args(["--parsable", "--no-requeue"]);
        command.arg(format!("--job-name={NAME_PREFIX}{}", spec.name));
        command.arg(format!("--array={}", numbers.join(",")));
        command.arg(format!("--cpus-per-task={}", spec.cpus));
        command.arg(format!("--output={output}/%A_%a.txt"));
        command.arg(format!("--chdir={}", spec.output.display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let CommandOutput { success, stdout, stderr } =
            run(&mut command, &script(spec.working_directory, spec.command))?;
        if !success {
            return Err(failure("Slurm refuses the array job", &stderr));
        }
        // The job number; in a federation of clusters followed by a semicolon and a cluster name.
        let job = stdout.trim().split(';').next().unwrap_or_default().to_owned();
        if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(failed("sbatch", format!("it answered '{}'", stdout.trim())));
        }
        Ok(JobArray { job })
    }

    /// Finds latlab's array for this output folder that has not ended, the newest if there are
    /// several; other jobs of the user do not count. Fails where Slurm does not answer.
    pub fn find_active(output: &Path) -> Result<Option<JobArray>> {
        let mut command = slurm_command("squeue");
        // The name is cut to the length of the prefix: the rest may contain any character.
        command.args(["--me", "--noheader", "--states=all", "--format=%F|%T|%K|%7j|%Z"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let CommandOutput { success, stdout, stderr } = run(&mut command, "")?;
        if !success {
            return Err(failure("Slurm does not list the jobs", &stderr));
        }
        let folder = output.display().to_string();
        Ok(newest_active(&stdout, &folder).map(|job| JobArray { job }))
    }

    /// Asks for the state of its tasks. Those that ended a short while ago are included.
    pub fn state(&self) -> ArrayState {
        let mut command = slurm_command("squeue");
        command.args(["--noheader", "--array", "--states=all", "--format=%K|%T|%r|%N"]);
        command.arg(format!("--jobs={}", self.job));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match run(&mut command, "") {
            Ok(output) if output.success => {
                let tasks = parse_tasks(&output.stdout);
                if tasks.is_empty() { ArrayState::Forgotten } else { ArrayState::Tasks(tasks) }
            }
            Ok(output) if output.stderr.contains("Invalid job id") => ArrayState::Forgotten,
            Ok(output) => ArrayState::Unknown(last_line(&output.stderr).to_owned()),
            Err(failure) => ArrayState::Unknown(failure.to_string()),
        }
    }

    /// Cancels the tasks that have not ended.
    pub fn cancel(&self) -> Result<()> {
        let mut command = slurm_command("scancel");
        command.arg(&self.job).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = run(&mut command, "")?;
        if output.success { Ok(()) } else { Err(failed("scancel", last_line(&output.stderr))) }
    }
}

impl ArrayTask {
    /// Whether it is over, completed or not.
    pub fn has_ended(&self) -> bool {
        is_final(&self.state)
    }

    /// Whether it waits to be started.
    pub fn is_pending(&self) -> bool {
        self.state == "PENDING"
    }

    /// Whether it ended with exit code 0.
    pub fn is_complete(&self) -> bool {
        self.state == "COMPLETED"
    }
}

/// Whether a job in this state does not run again.
fn is_final(state: &str) -> bool {
    const FINAL: [&str; 10] = [
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
    FINAL.contains(&state)
}

/// Finds the newest of latlab's arrays for this folder that has not ended, in the output of squeue.
/// Returns its job number.
pub fn newest_active(squeue: &str, folder: &str) -> Option<String> {
    let number = |line: &str| {
        let mut fields = line.trim().splitn(5, '|');
        let (job, state) = (fields.next()?.parse::<u64>().ok()?, fields.next()?);
        let is_array = fields.next()? != "N/A";
        let is_ours = is_array && fields.next()? == NAME_PREFIX && fields.next()? == folder;
        (is_ours && !is_final(state)).then_some(job)
    };
    squeue.lines().filter_map(number).max().map(|job| job.to_string())
}

/// The last line of a text that is not blank.
pub fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// Reads the tasks in the output of squeue.
pub fn parse_tasks(squeue: &str) -> Vec<ArrayTask> {
    let task = |line: &str| {
        let mut fields = line.trim().split('|').map(str::to_owned);
        let number = fields.next()?.parse().ok()?;
        let (state, reason) = (fields.next()?, fields.next()?);
        Some(ArrayTask { number, state, reason, node: fields.next().unwrap_or_default() })
    };
    squeue.lines().filter_map(task).collect()
}

/// The shell script of a task: changes to the working directory and runs the command, each word
/// quoted. If a node lacks that directory, relative paths are missing there as well.
fn script(working_directory: &Path, command: &[String]) -> String {
    let quoted = |word: &str| match word {
        TASK_NUMBER => format!("\"{TASK_NUMBER}\""),
        word => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let directory = quoted(&working_directory.display().to_string());
    format!("#!/bin/sh\ncd {directory}\nexec {}\n", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squeue_output_is_parsed() {
        let tasks =
            parse_tasks("3|COMPLETED|None|n1\n20|PENDING|Resources|\n7|RUNNING|None|n2\n\n");
        let ended: Vec<_> = tasks.iter().map(|task| (task.number, task.has_ended())).collect();
        assert_eq!(ended, [(3, true), (20, false), (7, false)]);
        assert!(tasks[0].is_complete() && tasks[1].node.is_empty());
        assert_eq!(tasks[1].reason, "Resources");
        assert_eq!(last_line("a\nlatlab: b\n\n"), "latlab: b");
    }

    #[test]
    fn newest_active_finds_array_of_folder_until_it_has_ended() {
        let answer = "7|RUNNING|1|latlab-|/a/slurm\n9|COMPLETED|2|latlab-|/a/slurm\n\
                      8|PENDING|3-9,11|latlab-|/a/slurm\n11|RUNNING|1|latlab-|/a/slurm|b\n\
                      12|RUNNING|1|latlab-|/a\n13|RUNNING|N/A|latlab-|/a/slurm\n\
                      14|RUNNING|1|bash   |/a/slurm\n";
        assert_eq!(newest_active(answer, "/a/slurm").as_deref(), Some("8"));
        assert_eq!(newest_active(answer, "/a/slurm|b").as_deref(), Some("11"));
        assert_eq!(newest_active(answer, "/b"), None);
    }

    #[test]
    fn script_keeps_each_word_as_one_word() {
        let words = ["/a b/latlab", "it's", TASK_NUMBER].map(str::to_owned);
        let script = script(Path::new("/it's here"), &words);
        let (cd, words) = script.split_once("\nexec").expect("it runs them");
        assert_eq!(cd, "#!/bin/sh\ncd '/it'\\''s here'");
        assert_eq!(words, " '/a b/latlab' 'it'\\''s' \"$SLURM_ARRAY_TASK_ID\"\n");
    }
}
