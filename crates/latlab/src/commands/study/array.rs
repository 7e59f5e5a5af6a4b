//! A study on a Slurm cluster: its cells as the tasks of an array job, and what came of each.

mod collecting;
mod waiting;

use self::collecting::{Patience, collected};
use self::waiting::Waiting;
use super::Study;
use super::judging::Judge;
use super::kept::{Kept, Measured};
use crate::failure::{Failure, Result, failed};
use crate::format;
use crate::slurm::{self, Array, Order, Seen, Task};
use crate::study::Source;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_sys::signal::{Event, Signals};
use std::path::{Path, PathBuf};

/// Has the cells measured of which the folder has no record, and takes what there is then.
pub(super) fn measure(
    study: &Study,
    source: &Source,
    cells: &[(&str, &[Plan])],
    kept: Kept<'_>,
) -> Result<Vec<Measured>> {
    let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
    let folder = folder(kept.0)?;
    wait_for_an_earlier(&folder, &signals)?;
    if study.elsewhere.is_fresh() {
        cells.iter().try_for_each(|(label, plans)| kept.forget(label, plans))?;
    }
    let mut judge = Judge::new(&study.elsewhere, &signals);
    let known = known(cells, kept, &mut judge)?;
    let missing = known.iter().enumerate().filter(|(_, known)| known.is_none());
    let missing: Vec<usize> = missing.map(|(nth, _)| nth + 1).collect();
    if missing.is_empty() {
        format::say("all cells have been measured before");
        return Ok(known.into_iter().flatten().map(Ok).collect());
    }
    let words = words(study, source, kept.0)?;
    let name = source.name.rsplit('/').next().unwrap_or_default();
    let from = std::env::current_dir().map_err(|e| failed("the current folder", e))?;
    let cpus = study.elsewhere.jobs().unwrap_or(1);
    let (from, folder) = (from.as_path(), folder.as_path());
    let order = Order { name, words: &words, numbers: &missing, cpus, from, folder };
    let array = Array::submit(&order)?;
    let (job, number, all) = (&array.job, missing.len(), cells.len());
    format::say(&format!("array job {job} has {number} of {all} cells to measure"));
    let tasks = Waiting::of(&array, number).until_the_end(&signals);
    let patience = Patience::begin();
    // Of an array that was seen, what never was is gone as what waited is.
    let gone = (!tasks.is_empty()).then(Task::waiting);
    let mut measured = Vec::new();
    for (nth, (known, (label, plans))) in known.into_iter().zip(cells).enumerate() {
        let (number, task) = (nth + 1, tasks.get(&(nth + 1)).or(gone.as_ref()));
        let output = folder.join(format!("{job}_{number}.txt"));
        let mut record = || match kept.cell(label, plans) {
            Ok(records) => judge.accepted(label, plans, records),
            lacking => Ok(lacking),
        };
        measured.push(match known {
            Some(records) => Ok(records),
            None => collected(job, number, task, &output, patience, &mut record)?,
        });
    }
    drop(judge);
    std::mem::forget(signals);
    Ok(measured)
}

/// Waits for the array that an earlier start has left at work for this folder, if there is one: a
/// second one would measure the same at the same time.
fn wait_for_an_earlier(folder: &Path, signals: &Signals) -> Result<()> {
    let mut over = None;
    while let Some(array) = Array::at_work(folder)? {
        let job = &array.job;
        let its_job = format!("array job {job}");
        format::say(&format!("{its_job} of an earlier start is still at work: waiting for it"));
        let number = if let Seen::Tasks(tasks) = array.look() { tasks.len() } else { 1 };
        let is_over = Waiting::of(&array, number).looking_on(signals);
        // Slurm's lists need not agree at once.
        if !is_over || signals.wait(Nanos::from_secs(1)) == Event::End {
            let why = format!(
                "no longer waited for, and it goes on: the same command waits for it again, and \
                 scancel {job} ends it"
            );
            return Err(failed(&its_job, why));
        }
        if over.as_ref() == Some(job) {
            let why = format!(
                "Slurm says that it is at work and that it is over: look with squeue; the same \
                 command goes on after scancel {job}"
            );
            return Err(failed(&its_job, why));
        }
        over = Some(array.job);
    }
    Ok(())
}

/// The records of each cell that are there and would be measured alike now. Those that would not
/// stay until a task writes over them, and are judged again then: no look takes anything away.
fn known(
    cells: &[(&str, &[Plan])],
    kept: Kept<'_>,
    judge: &mut Judge<'_>,
) -> Result<Vec<Option<Vec<Record>>>> {
    let mut one = |(label, plans): &(&str, &[Plan])| {
        let Ok(records) = kept.cell(label, plans) else { return Ok(None) };
        match judge.takes(label, plans, &records) {
            Ok(takes) => Ok(takes.then_some(records)),
            Err(failure) if judge.is_ended() => Err(failure),
            Err(failure) => Err(untold(failure)),
        }
    };
    let known = cells.iter().map(&mut one).collect::<Result<Vec<_>>>()?;
    judge.say_what_was_refused();
    Ok(known)
}

/// That nobody knows here whether what is there can be taken, and what can be done.
fn untold(failure: Failure) -> Failure {
    failure.about(
        "whether the records that are there are to be taken can't be told here (--fresh measures \
         again, --merge takes them as they are)",
    )
}

/// Where the tasks write what they say.
fn folder(out: &Path) -> Result<PathBuf> {
    let folder = out.join("slurm");
    let made = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    made.map_err(|e| failed(&folder.display().to_string(), e))
}

/// What a task runs: this program, for the one cell.
fn words(study: &Study, source: &Source, out: &Path) -> Result<Vec<String>> {
    let text = |path: &Path| {
        let whole = path.canonicalize().map_err(|e| failed(&path.display().to_string(), e))?;
        whole.into_os_string().into_string().map_err(|path| {
            failed(&path.display().to_string(), "Slurm takes names only that are UTF-8")
        })
    };
    let name = source.file.as_deref().map_or_else(|| Ok(source.name.clone()), text)?;
    let program = std::env::current_exe().map_err(|e| failed("our own program", e))?;
    let mut words = vec![text(&program)?, "study".to_owned(), name, "--out".to_owned()];
    words.extend([text(out)?, "--cell".to_owned(), slurm::NUMBER.to_owned()]);
    words.push(format!("--jobs={}", study.elsewhere.jobs().unwrap_or(1)));
    words.extend(study.time.map(|time| format!("--for={}ns", time.0)));
    words.extend(study.elsewhere.words());
    Ok(words)
}
