//! A study on a Slurm cluster: its cells as the tasks of an array job, and what came of each.

use super::Study;
use super::kept::{Kept, Measured};
use crate::failure::{Result, failed};
use crate::format::{self, live};
use crate::rig::Watch;
use crate::slurm::{self, Array, Order, Seen, Task};
use crate::study::Source;
use latlab_core::plan::Plan;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::signal::{Event, Signals};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Has the cells measured of which the folder has no record, and takes what there is then.
pub(super) fn measure(
    study: &Study,
    source: &Source,
    cells: &[(&str, &[Plan])],
    kept: Kept<'_>,
) -> Result<Vec<Measured>> {
    if study.elsewhere.is_fresh() {
        cells.iter().try_for_each(|(label, plans)| kept.forget(label, plans))?;
    }
    let known: Vec<Option<Measured>> =
        cells.iter().map(|(label, plans)| kept.cell(label, plans).ok().map(Ok)).collect();
    let missing = known.iter().enumerate().filter(|(_, known)| known.is_none());
    let missing: Vec<usize> = missing.map(|(nth, _)| nth + 1).collect();
    if missing.is_empty() {
        format::say("all cells have been measured before");
        return Ok(known.into_iter().flatten().collect());
    }
    let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
    let folder = folder(kept.0)?;
    let words = words(study, kept.0)?;
    let name = format!("latlab-{}", source.name.rsplit('/').next().unwrap_or_default());
    let cpus = study.elsewhere.jobs().unwrap_or(1);
    let order = Order { name: &name, words: &words, numbers: &missing, cpus, folder: &folder };
    let array = Array::submit(&order)?;
    let (job, number, all) = (&array.job, missing.len(), cells.len());
    format::say(&format!("array job {job} has {number} of {all} cells to measure"));
    let tasks = Waiting::of(&array, number).until_the_end(&signals);
    std::mem::forget(signals);
    let patience = Patience::begin();
    // Of an array that was seen, what never was is gone as what waited is.
    let gone = (!tasks.is_empty()).then(Task::waiting);
    let mut measured = Vec::new();
    for (nth, (known, (label, plans))) in known.into_iter().zip(cells).enumerate() {
        let (number, task) = (nth + 1, tasks.get(&(nth + 1)).or(gone.as_ref()));
        let output = folder.join(format!("{job}_{number}.txt"));
        measured.push(known.unwrap_or_else(|| {
            collected(job, number, task, &output, patience, || kept.cell(label, plans))
        }));
    }
    Ok(measured)
}

/// Where the tasks write what they say.
fn folder(out: &Path) -> Result<PathBuf> {
    let folder = out.join("slurm");
    let made = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    made.map_err(|e| failed(&folder.display().to_string(), e))
}

/// What a task runs: this program, for the one cell.
fn words(study: &Study, out: &Path) -> Result<Vec<String>> {
    let text = |path: &Path| {
        let whole = path.canonicalize().map_err(|e| failed(&path.display().to_string(), e))?;
        whole.into_os_string().into_string().map_err(|path| {
            failed(&path.display().to_string(), "Slurm takes names only that are UTF-8")
        })
    };
    let file = Path::new(&study.name);
    let name = if file.is_file() { text(file)? } else { study.name.clone() };
    let program = std::env::current_exe().map_err(|e| failed("our own program", e))?;
    let mut words = vec![text(&program)?, "study".to_owned(), name, "--out".to_owned()];
    words.extend([text(out)?, "--cell".to_owned(), slurm::NUMBER.to_owned()]);
    words.push(format!("--jobs={}", study.elsewhere.jobs().unwrap_or(1)));
    words.extend(study.time.map(|time| format!("--for={}ns", time.0)));
    words.extend(study.elsewhere.words());
    Ok(words)
}

/// An array that is waited for.
struct Waiting<'a> {
    array: &'a Array,
    watch: Box<dyn Watch>,
    began: Nanos,
    number: usize,
    /// How many tasks are over.
    done: usize,
    /// Whether the others are cancelled.
    cancelled: bool,
    /// Each task as it was last seen: Slurm forgets those that have ended.
    tasks: BTreeMap<usize, Task>,
    /// Since when Slurm has said nothing.
    silent: Option<Nanos>,
}

impl Waiting<'_> {
    fn of(array: &Array, number: usize) -> Waiting<'_> {
        let (watch, began) = (live::cells(number), clock::now());
        let tasks = BTreeMap::new();
        Waiting { array, watch, began, number, done: 0, cancelled: false, tasks, silent: None }
    }

    /// Waits until all tasks have ended, or the user wants the end: then those that have not are
    /// cancelled, and waited for a little.
    fn until_the_end(mut self, signals: &Signals) -> BTreeMap<usize, Task> {
        const PATIENCE: Nanos = Nanos::from_secs(60);
        let mut until: Option<Nanos> = None;
        while !self.look() && until.is_none_or(|until| clock::now() < until) {
            if signals.wait(self.pace()) == Event::End && until.is_none() {
                until = Some(clock::now() + PATIENCE);
                self.watch.note("");
                self.cancelled = true;
                format::say(&match self.array.cancel() {
                    Ok(()) => format!("array job {} is cancelled", self.array.job),
                    Err(failure) => format!("array job {} goes on: {failure}", self.array.job),
                });
            }
        }
        self.watch.note("");
        self.tasks
    }

    /// Asks Slurm. Whether all is over.
    fn look(&mut self) -> bool {
        /// A controller that is started anew is back by then.
        const PATIENCE: Nanos = Nanos::from_secs(600);
        let tasks = match self.array.look() {
            Seen::Tasks(tasks) => tasks,
            Seen::Forgotten => return true,
            Seen::Silence(why) => {
                let since = *self.silent.get_or_insert_with(clock::now);
                self.watch.note(&format!("Slurm does not answer: {why}"));
                let gives_up = clock::now() > since + PATIENCE;
                if gives_up {
                    let job = &self.array.job;
                    let what = format!("array job {job} may go on: end it with scancel {job}");
                    format::say(&format!("Slurm has not answered for {PATIENCE}: {what}"));
                }
                return gives_up;
            }
        };
        self.silent = None;
        // One that is cancelled before it begins is gone at once.
        let to_come = tasks.iter().filter(|task| !task.has_ended()).count();
        let done = self.number.saturating_sub(to_come);
        let over = if self.cancelled { 0..0 } else { self.done..done };
        for nth in over {
            self.watch.done(nth + 1, self.number);
        }
        self.done = done;
        self.watch.note(&self.state(&tasks));
        self.tasks.extend(tasks.into_iter().map(|task| (task.number, task)));
        to_come == 0
    }

    /// In a few words, what goes on.
    fn state(&self, tasks: &[Task]) -> String {
        let of = |state: &str| tasks.iter().filter(|task| task.state == state).count();
        let waiting = tasks.iter().find(|task| task.state == "PENDING");
        let why = waiting.map(|task| format!(" ({})", task.reason)).unwrap_or_default();
        let (done, all) = (self.done, self.number);
        format!("{done} of {all} done; {} running, {} waiting{why}", of("RUNNING"), of("PENDING"))
    }

    /// Slurm is asked the less often the longer it takes.
    fn pace(&self) -> Nanos {
        let tenth = Nanos((clock::now() - self.began).0 / 10);
        tenth.clamp(Nanos::from_secs(1), Nanos::from_secs(30))
    }
}

/// What a task has left, or why there is nothing. A shared file system may show it late.
fn collected(
    job: &str,
    number: usize,
    task: Option<&Task>,
    output: &Path,
    patience: Patience,
    record: impl Fn() -> Measured,
) -> Measured {
    let its_job = format!("its job {job}_{number}");
    match task {
        Some(task) if task.is_complete() => loop {
            match record() {
                Err(_) if patience.is_left() => drop(clock::sleep_for(Nanos::from_millis(500))),
                there => {
                    let why = "do all nodes share the folder of --out?";
                    let lacks = |e| failed(&format!("{its_job} has left no record"), e);
                    return there.map_err(|e| lacks(format!("{e}; {why}")));
                }
            }
        },
        Some(task) if task.has_ended() => Err(failed(&its_job, end(task, output))),
        Some(task) if task.waits() => {
            record().map_err(|_| failed(&its_job, "cancelled before it began"))
        }
        _ => record().map_err(|_| failed(&its_job, "Slurm does not say how it ended")),
    }
}

/// Until when to wait for records.
#[derive(Clone, Copy)]
struct Patience(Nanos);

impl Patience {
    fn begin() -> Patience {
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
