//! A study on a Slurm cluster: each cell is a task of a job array.

mod monitor;
mod outcome;

use self::monitor::ArrayMonitor;
use self::outcome::FinishedArray;
use super::Study;
use super::fingerprints::Fingerprints;
use super::folder::{CellPlans, CellResult, Folder};
use crate::commands::block_signals;
use crate::study::StudyFile;
use crate::study::slurm::{ArraySpec, ArrayState, JobArray, TASK_NUMBER};
use crate::target;
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use latlab_format as format;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::signal::{Event, Signals};
use std::path::{Path, PathBuf};

/// Lets Slurm measure the cells without current records in the folder. Returns the records of all
/// cells.
pub(super) fn measure(
    study: &Study,
    file: &StudyFile,
    cells: &[CellPlans<'_>],
    folder: Folder<'_>,
) -> Result<Vec<CellResult>> {
    let signals = block_signals()?;
    let output = create_output_folder(folder.0)?;
    wait_for_earlier_array(&output, &signals)?;
    if study.targets.is_fresh() {
        cells.iter().try_for_each(|cell| folder.remove(*cell))?;
    }
    let mut fingerprints = Fingerprints::new(&study.targets, &signals);
    let stored = load_current(cells, folder, &mut fingerprints)?;
    let missing = stored.iter().enumerate().filter(|(_, records)| records.is_none());
    let missing: Vec<usize> = missing.map(|(nth, _)| nth + 1).collect();
    if missing.is_empty() {
        format::say("all cells have been measured before");
        return Ok(stored.into_iter().flatten().map(Ok).collect());
    }
    let array = submit(study, file, folder, &output, &missing)?;
    let (job, number, all) = (&array.job, missing.len(), cells.len());
    format::say(&format!("array job {job} has {number} of {all} cells to measure"));
    let tasks = ArrayMonitor::new(&array, number).wait_or_cancel(&signals);
    let finished = FinishedArray::new(job, tasks, &output);
    let mut results = Vec::new();
    for (nth, (records, cell)) in stored.into_iter().zip(cells).enumerate() {
        let mut load = || match folder.load(*cell) {
            Ok(records) => fingerprints.accept(*cell, records),
            missing => Ok(missing),
        };
        results.push(match records {
            Some(records) => Ok(records),
            None => finished.collect(nth + 1, &mut load)?,
        });
    }
    drop(fingerprints);
    Ok(results)
}

/// Waits for an array that an earlier start has left running for this folder, if there is one: a
/// second one would measure the same at the same time.
fn wait_for_earlier_array(output: &Path, signals: &Signals) -> Result<()> {
    let mut finished = None;
    while let Some(array) = JobArray::find_active(output)? {
        let job = &array.job;
        let name = format!("array job {job}");
        format::say(&format!("{name} of an earlier start is still running: waiting for it"));
        let number = if let ArrayState::Tasks(tasks) = array.state() { tasks.len() } else { 1 };
        let is_over = ArrayMonitor::new(&array, number).wait_or_leave(signals);
        // Slurm's lists may disagree for a moment.
        if !is_over || signals.wait(Nanos::from_secs(1)) == Event::End {
            let why = format!(
                "still running, but no longer waited for: the same command waits for it again, \
                 and scancel {job} ends it"
            );
            return Err(failed(&name, why));
        }
        if finished.as_ref() == Some(job) {
            let why = format!(
                "Slurm lists it as running and as finished: check with squeue, and start again \
                 after scancel {job}"
            );
            return Err(failed(&name, why));
        }
        finished = Some(array.job);
    }
    Ok(())
}

/// Reads the current records of each cell. Outdated ones stay in the folder until a task overwrites
/// them.
fn load_current(
    cells: &[CellPlans<'_>],
    folder: Folder<'_>,
    fingerprints: &mut Fingerprints<'_>,
) -> Result<Vec<Option<Vec<Record>>>> {
    let mut load = |cell: &CellPlans<'_>| {
        let Ok(records) = folder.load(*cell) else { return Ok(None) };
        match fingerprints.match_records(*cell, &records) {
            Ok(is_current) => Ok(is_current.then_some(records)),
            Err(failure) if fingerprints.are_interrupted() => Err(failure),
            Err(failure) => Err(undecided(failure)),
        }
    };
    let current = cells.iter().map(&mut load).collect::<Result<Vec<_>>>()?;
    fingerprints.report_outdated();
    Ok(current)
}

fn undecided(failure: Failure) -> Failure {
    failure.about(
        "it can't be checked here whether the stored records are current (--fresh measures all \
         cells again, --merge takes the records as they are)",
    )
}

/// Creates the folder to which the tasks write their output, and returns its absolute path.
fn create_output_folder(out: &Path) -> Result<PathBuf> {
    let folder = out.join("slurm");
    let created = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    created.at(&folder)
}

/// Submits an array with a task for each of the cells with these numbers.
fn submit(
    study: &Study,
    file: &StudyFile,
    folder: Folder<'_>,
    output: &Path,
    cells: &[usize],
) -> Result<JobArray> {
    let working_directory = std::env::current_dir().context("the current folder")?;
    JobArray::submit(&ArraySpec {
        name: file.name.rsplit('/').next().unwrap_or_default(),
        command: &task_command(study, file, folder.0)?,
        numbers: cells,
        cpus: study.targets.jobs().unwrap_or(1),
        working_directory: &working_directory,
        output,
    })
}

/// The command that a task runs: this program, which measures one cell.
fn task_command(study: &Study, file: &StudyFile, out: &Path) -> Result<Vec<String>> {
    let absolute = |path: &Path| {
        let path = path.canonicalize().at(path)?;
        path.into_os_string().into_string().map_err(|path| {
            failed(&path.display().to_string(), "Slurm takes only names that are UTF-8")
        })
    };
    let name = file.path.as_deref().map_or_else(|| Ok(file.name.clone()), absolute)?;
    let program = std::env::current_exe().context("latlab's own program")?;
    let mut command = vec![absolute(&program)?, "study".to_owned(), name, "--out".to_owned()];
    command.extend([absolute(out)?, "--cell".to_owned(), TASK_NUMBER.to_owned()]);
    let targets = file.study.cells.iter().filter_map(|cell| cell.terms.on.as_ref());
    if targets.map(|on| target::kind(&on.text)).any(|kind| kind == "lab") {
        command.push(format!("--jobs={}", study.targets.jobs().unwrap_or(1)));
    }
    command.extend(study.time.map(|time| format!("--for={}ns", time.0)));
    command.extend(study.full.then(|| "--full".to_owned()));
    command.extend(study.targets.arguments());
    Ok(command)
}
