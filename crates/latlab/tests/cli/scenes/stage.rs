//! Tasks in a guest, of which `explain` watches one: those of `tasks.c`, which holds the CPU and stops
//! others as it is told.

use crate::program::{Output, command, compile, folder, run};
use latlab_core::record::explained::Explained;
use latlab_core::record::{Charge, Record, Sample};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The name of the task that is watched.
pub(super) const VICTIM: &str = "victim";

/// Kernels by release, with PREEMPT_RT and without. Each scene draws one.
pub(super) const KERNELS: [&str; 6] = ["v6.1", "v6.1-rt", "v6.12", "v6.12-rt", "v7.3", "v7.3-rt"];

/// The program with the tasks.
pub(super) struct Stage {
    program: PathBuf,
    _folder: TempDir,
}

/// A scene: where it runs, what is done before, and its tasks as `tasks.c` takes them.
pub(super) struct Cast {
    /// The guest, as `lab:` takes it.
    pub(super) guest: String,
    /// Commands of a shell in /sys/fs/cgroup.
    pub(super) before: String,
    pub(super) tasks: Vec<String>,
    /// For how long they act, in nanoseconds.
    pub(super) length: u64,
    /// Whether latlab has the highest priority, as it has to where real-time tasks leave it no time.
    pub(super) first: bool,
    /// The arguments of `explain`.
    pub(super) words: String,
}

/// Time from the start of the tasks until they act, by when latlab watches them.
const BEGIN: u64 = 4_000 * MS;

impl Stage {
    pub(super) fn new() -> Stage {
        let folder = folder();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/scenes/tasks.c");
        Stage { program: compile(&source, folder.path(), &["-static"]), _folder: folder }
    }

    /// Runs a scene and explains it. A failure has the command that repeats it.
    pub(super) fn judge(
        &self,
        cast: &Cast,
        judge: impl FnOnce(&Record) -> Result<(), String>,
    ) -> Result<(), String> {
        let (output, script) = self.run(cast);
        let judged = match output.code() {
            Some(0) => judge(&output.record()),
            _ => Err(format!("{output:?}")),
        };
        judged.map_err(|why| format!("{} {script}: {why}", cast.guest))
    }

    fn run(&self, cast: &Cast) -> (Output, String) {
        let tasks: String = cast.tasks.iter().map(|task| format!(" {task}")).collect();
        let (program, Cast { before, length, words, .. }) = (self.program.display(), cast);
        let first = if cast.first { "/latlab exec --fifo 99 -- " } else { "" };
        let script = format!(
            "set -e; cd /sys/fs/cgroup; {before} {program} {length}{tasks} & sleep 0.05; exec \
             {first}/latlab explain --comm {VICTIM} --json --for {}ns {words}",
            BEGIN + length + 100 * MS
        );
        let tools = ["sh", "sleep", "mkdir"].map(|tool| format!("--with /bin/{tool}"));
        let mut exec = command(&format!("exec --on lab:{} {}", cast.guest, tools.join(" ")));
        exec.arg("--with").arg(&self.program).args(["--", "sh", "-c", &script]);
        (run(&mut exec), script)
    }
}

/// A millisecond.
pub(super) const MS: u64 = 1_000_000;

/// The longest part of a wake-up that interrupts, timers and switches take.
pub(super) const SHORT: u64 = 60_000;

/// The longest time for which latlab reads events between two ticks. It was 5 ms in all at first, which 9 ms
/// exceeded.
const READING: u64 = 4 * MS;

/// Whether a charge has this cause, and this task as its culprit.
pub(super) fn is_by(charge: &Charge, cause: &str, task: &str) -> bool {
    let rest = charge.culprit.strip_prefix(task);
    charge.cause == cause && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether a charge is for the thread that wakes the task, behind this task.
pub(super) fn is_behind(charge: &Charge, task: &str) -> bool {
    let behind = charge.culprit.split_once(" behind ").map(|(_, front)| front);
    charge.cause == "interrupt-thread" && behind.is_some_and(|front| front.starts_with(task))
}

/// Whether a charge is what any wake-up may meet beside what the scene does to it.
pub(super) fn is_usual(charge: &Charge) -> bool {
    const BRIEF: [&str; 8] = [
        "interrupt",
        "timer-callbacks",
        "timer-resolution",
        "softirq",
        "dispatch",
        "idle-exit",
        "non-preemptible",
        "interrupts-off",
    ];
    /// Threads of the kernel, by how their names begin.
    const KERNEL: [&str; 16] = [
        "cpuhp/",
        "irq_work/",
        "kauditd",
        "kcompactd",
        "kdamond",
        "kdevtmpfs",
        "khugepaged",
        "khungtaskd",
        "ksmd",
        "ksoftirqd/",
        "kswapd",
        "ktimers/",
        "kworker/",
        "migration/",
        "oom_reaper",
        "rcu",
    ];
    let is_short = charge.ns.0 <= SHORT;
    let is_kernel = KERNEL.iter().any(|name| charge.culprit.starts_with(name));
    let is_latlab = charge.culprit.starts_with("latlab") && charge.ns.0 <= READING;
    match &*charge.cause {
        "higher-priority" | "equal-priority" => is_latlab || is_kernel && is_short,
        "interrupt-thread" => charge.culprit.contains(" behind latlab") || is_kernel && is_short,
        brief => BRIEF.contains(&brief) && is_short,
    }
}

/// Says which charge is neither usual nor one that this scene has, and where more than 1 us or 1 % is unexplained.
pub(super) fn judge_charges(
    record: &Record,
    is_known: impl Fn(&Charge) -> bool,
) -> Result<(), String> {
    for sample in &record.worst {
        let unexplained = sample.unexplained.ok_or("a sample is not explained")?;
        if unexplained.0 > 1_000.max(sample.latency.0 / 100) {
            return Err(format!("{unexplained} unexplained of {sample:?}"));
        }
        let wrong = sample.causes.iter().find(|charge| !is_usual(charge) && !is_known(charge));
        if let Some(charge) = wrong {
            return Err(format!("{charge:?} in {sample:?}"));
        }
    }
    Ok(())
}

/// The time of a sample that is charged to a cause.
pub(super) fn time_of(sample: &Sample, cause: &str) -> u64 {
    sample.causes.iter().filter(|charge| charge.cause == cause).map(|charge| charge.ns.0).sum()
}

/// The explanation of a record.
pub(super) fn explained(record: &Record) -> Result<&Explained, String> {
    record.explained.as_ref().ok_or_else(|| "the record is not explained".to_owned())
}

/// Says that a value is not what it should be.
pub(super) fn expect(
    what: &str,
    value: u64,
    range: std::ops::RangeInclusive<u64>,
) -> Result<(), String> {
    if range.contains(&value) { Ok(()) } else { Err(format!("{what} {value}, not {range:?}")) }
}
