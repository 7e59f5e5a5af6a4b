//! `latlab study`: reproduces a table or figure of a paper.

mod array;
mod cells;
mod fingerprints;
mod folder;
mod one_kernel;
mod results;
mod worst;

use self::folder::{CellPlans, CellResult, Folder};
use self::results::Results;
use self::worst::WorstCell;
use super::complete;
use super::target_options::{OPTIONS, TargetOptions};
use super::worse;
use crate::study::{self, StudyFile};
use latlab_core::plan::Plan;
use latlab_core::record::{Record, WarningCode};
use latlab_core::study::findings::Mismatch;
use latlab_core::time::Nanos;
use latlab_format as format;
use latlab_format::width::Width;
use latlab_part::failure::{Failure, FailureKind, Result, failed};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab study quick --out quick/              three kernels, two loads: about a minute
  latlab list studies                          list the studies that come with latlab
  latlab study mine.toml --check               check a study of your own for errors
  latlab study abeni-loads-long --for 10h --out t2/
                                               ten hours of each cell, in pieces; the same
                                               command resumes it after an interruption
  latlab study quick --engine slurm --out /shared/quick/
                                               on a Slurm cluster, each cell a task of an array job
  latlab study quick --on native               the cells and claims that this kernel can answer
  latlab study mine.toml --cell 3 --out mine/  one cell; when all cells have been measured and their
                                               records are in mine/records: --merge --out mine/";

/// Reproduce a table or figure of a paper on real kernels
///
/// A study consists of cells: each runs probes and loads on one kernel. The output shows the
/// measured values next to the published ones, and whether each claim of the paper holds, no longer
/// holds (today's kernels lack what it was based on), differs, agrees by construction (the study's
/// own set-up decides it), or was not measured. Results of the laboratory are cached: a study that
/// was stopped resumes where it stopped, and repeating a study gives identical files.
/// docs/studies.md describes how to write one.
///
/// Exit codes: 0 success, whether claims hold or not; 2 a cell could not be measured; 3 none of the
/// failed cells can be measured on this machine; 4 it was ended early (Ctrl-C; on Slurm 2): the same
/// command goes on where it ended, but outside the laboratory it measures cells of up to 5min again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option; `action` makes an enum of them"
)]
pub(super) struct Study {
    /// A study that comes with latlab (see: latlab list studies), or a file
    #[arg(value_name = "NAME|FILE.toml", add = complete::studies())]
    name: String,
    /// Write the tables (table.md, table.csv, claims.csv), a report, each picture as SVG, and the
    /// records to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure each cell for this time instead of the time in the study; cells longer than 5min are
    /// measured in pieces, which are stored in DIR/pieces
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    time: Option<Nanos>,
    /// Measure as long as the paper did, where the study's own lengths are shorter; takes hours, and
    /// stores pieces as --for does
    #[arg(long, conflicts_with = "time")]
    full: bool,
    /// Measure on another target: native, ssh:HOST, or vm: (the profile of each cell in wall-clock
    /// time). Cells are repeated six times and take turns; the cells of kernels that the target does
    /// not run are left out, and the claims about them are listed as not measured
    #[arg(long, value_name = "TARGET")]
    on: Option<String>,
    /// Measure here, or with an array job on a Slurm cluster whose nodes share DIR; slurm skips
    /// cells that have valid records in DIR/records
    #[arg(long, value_name = "ENGINE", default_value = "here", conflicts_with_all = ["check", "list_cells", "cell", "merge"])]
    engine: Engine,
    /// Measure the cell with the longest latency once more with latlab explain, and show the causes
    /// in the report
    #[arg(long, requires = "out", conflicts_with_all = ["check", "list_cells", "cell", "merge"])]
    explain: bool,
    /// Only check the study for errors
    #[arg(long, conflicts_with_all = ["list_cells", "cell", "merge"], conflicts_with_all = OPTIONS)]
    check: bool,
    /// Only list the cells with their numbers
    #[arg(long, conflicts_with_all = ["cell", "merge"], conflicts_with_all = OPTIONS)]
    list_cells: bool,
    /// Measure only this cell, and write its records to DIR/records
    #[arg(long, value_name = "N", requires = "out", conflicts_with = "merge")]
    cell: Option<usize>,
    /// Only make the table, from the records in DIR/records
    #[arg(long, requires = "out", conflicts_with_all = OPTIONS)]
    merge: bool,
    #[command(flatten)]
    targets: TargetOptions,
}

/// Method of measuring cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// This process measures, on the study's targets
    Here,
    /// A Slurm array job measures, with one task for each cell
    Slurm,
}

/// Action that the options select.
enum Action<'a> {
    /// Report that the study has no errors; reading it has already found any.
    Check,
    /// List the cells.
    ListCells,
    /// Measure the cell with this number, counted from 1, and write its records to the folder.
    MeasureCell(usize, Folder<'a>),
    /// Make the table from the records of all cells.
    MakeTable(RecordSource<'a>),
}

/// Source of the records of the cells.
#[derive(Clone, Copy)]
enum RecordSource<'a> {
    /// This latlab measures the cells, and writes their records to the folder if there is one.
    Here(Option<Folder<'a>>),
    /// Tasks of a Slurm array measure the cells, and write their records to the folder.
    Slurm(Folder<'a>),
    /// The folder has them; nothing is measured.
    Stored(Folder<'a>),
}

impl<'a> RecordSource<'a> {
    fn folder(self) -> Option<Folder<'a>> {
        match self {
            RecordSource::Here(folder) => folder,
            RecordSource::Slurm(folder) | RecordSource::Stored(folder) => Some(folder),
        }
    }
}

/// The records of a cell's repetitions; none where it could not be measured.
type CellRecords = Option<Vec<Record>>;

impl Study {
    pub(super) fn run(&self) -> Result<()> {
        let file = self.read()?;
        let plans = file.plans()?;
        self.check_options(&plans)?;
        let cells = file.study.cells.iter().zip(&plans);
        let cells: Vec<CellPlans<'_>> =
            cells.map(|(cell, plans)| CellPlans { label: &cell.label, plans }).collect();
        match self.action()? {
            Action::Check => format::show(&format::study::checked(&file.name, &file.study)),
            Action::ListCells => {
                let width = Width::of_stdout();
                format::show(&format::study::cells(&file.study, &plans, width))
            }
            Action::MeasureCell(number, folder) => self.measure_cell(&file, &cells, number, folder),
            Action::MakeTable(source) => self.make_table(&file, &plans, &cells, source),
        }
    }

    /// Reads the study, with the time of `--for`.
    fn read(&self) -> Result<StudyFile> {
        let mut file = study::find(&self.name)?;
        if let Some(time) = self.time {
            let last = file.study.set_length(time);
            last.map_err(|why| failed(&self.name, format!("--for is not possible: {why}")))?;
        }
        if self.full {
            let set = file.study.set_full_length();
            set.map_err(|why| failed(&self.name, format!("--full is not possible: {why}")))?;
        }
        match (&self.on, self.engine) {
            (Some(_), Engine::Slurm) => {
                let why =
                    "--on can't be combined with --engine slurm: nodes have kernels of their own";
                return Err(Failure::failed(why));
            }
            (Some(target), Engine::Here) => file.move_to(target)?,
            (None, _) => {}
        }
        Ok(file)
    }

    /// Refuses options that have no effect on the target of these plans. With a folder, `--fresh`
    /// has an effect on every target: it measures the folder's cells again. On Slurm, `--jobs` has
    /// an effect on every target.
    fn check_options(&self, plans: &[Vec<Plan>]) -> Result<()> {
        let Some(plan) = plans.iter().flatten().next() else { return Ok(()) };
        let (has_folder, on_slurm) = (self.out.is_some(), self.engine == Engine::Slurm);
        self.targets.without(has_folder, on_slurm).check(&plan.target)
    }

    fn action(&self) -> Result<Action<'_>> {
        let folder = self.out.as_deref().map(Folder);
        let folder_for = |option: &str| {
            folder.ok_or_else(|| Failure::failed(format!("{option} needs --out DIR")))
        };
        Ok(if self.check {
            Action::Check
        } else if self.list_cells {
            Action::ListCells
        } else if let Some(number) = self.cell {
            Action::MeasureCell(number, folder_for("--cell")?)
        } else if self.merge {
            Action::MakeTable(RecordSource::Stored(folder_for("--merge")?))
        } else {
            Action::MakeTable(match (self.engine, folder) {
                (Engine::Here, folder) => RecordSource::Here(folder),
                (Engine::Slurm, Some(folder)) => RecordSource::Slurm(folder),
                (Engine::Slurm, None) => {
                    let why =
                        "--engine slurm needs --out DIR, on a file system that all nodes share";
                    return Err(Failure::failed(why));
                }
            })
        })
    }

    fn measure_cell(
        &self,
        file: &StudyFile,
        cells: &[CellPlans<'_>],
        number: usize,
        folder: Folder<'_>,
    ) -> Result<()> {
        let nth = number.checked_sub(1).filter(|nth| *nth < cells.len()).ok_or_else(|| {
            let cells = cells.len();
            Failure::failed(format!("there is no cell {number}: cells are 1 to {cells}"))
        })?;
        folder.create()?;
        let mut measured = cells::measure(file, &cells[nth..=nth], Some(folder), &self.targets)?;
        let records = one_kernel::check(file, nth, measured.remove(0))?;
        folder.store(cells[nth].label, &records)
    }

    fn make_table(
        &self,
        file: &StudyFile,
        plans: &[Vec<Plan>],
        cells: &[CellPlans<'_>],
        source: RecordSource<'_>,
    ) -> Result<()> {
        if self.explain {
            worst::check(file, plans)?;
        }
        let folder = source.folder();
        folder.map_or(Ok(()), Folder::create)?;
        let (records, failures) = separate(file, self.records(file, cells, source)?);
        let (others, failures) = one_kernel::separate_others(file, failures);
        if records.iter().all(Option::is_none) {
            report_failures(file, &failures, "there is no table")?;
            return Err(one_kernel::none_here(file));
        }
        report_warnings(file, &records);
        let stored = match source {
            RecordSource::Here(Some(folder)) => store(folder, cells, &records),
            _ => Ok(()),
        };
        let findings = file.study.findings(&records);
        let results = Results { file, findings: &findings, records: &records };
        let worst = WorstCell::find(file, plans, &findings, &records);
        let write = |folder: Folder<'_>| {
            let explained = worst.as_ref().and_then(|worst| worst.load(folder));
            results.write(folder.0, explained)
        };
        let written = stored.and_then(|()| folder.map_or(Ok(()), write));
        let width = Width::of_stdout();
        let shown = format::show(&format::study::text(&file.study, &findings, &records, width));
        one_kernel::report_claims(&findings, &others);
        let is_ended = failures.iter().any(|(_, why)| why.kind == FailureKind::CutShort);
        let explained = match folder {
            Some(folder) if self.explain && !is_ended && written.is_ok() => {
                self.explain_worst(folder, worst.as_ref(), &results)
            }
            _ => Ok(()),
        };
        if let Some(folder) = folder.filter(|_| written.is_ok()) {
            report_files(file, folder.0);
        }
        let measured = worse(report_failures(file, &failures, "the table lacks them"), explained);
        worse(measured, worse(written, shown))
    }

    fn records(
        &self,
        file: &StudyFile,
        cells: &[CellPlans<'_>],
        source: RecordSource<'_>,
    ) -> Result<Vec<CellResult>> {
        match source {
            RecordSource::Here(folder) if file.stand_ins.is_empty() => {
                cells::measure(file, cells, folder, &self.targets)
            }
            RecordSource::Here(folder) => one_kernel::measure(file, cells, folder, &self.targets),
            RecordSource::Slurm(folder) => array::measure(self, file, cells, folder),
            RecordSource::Stored(folder) => {
                let loaded = cells.iter().map(|cell| folder.load(*cell)).enumerate();
                Ok(loaded.map(|(nth, records)| one_kernel::check(file, nth, records)).collect())
            }
        }
    }

    /// Explains the longest latency, and writes the report again, with the explanation.
    fn explain_worst(
        &self,
        folder: Folder<'_>,
        worst: Option<&WorstCell<'_>>,
        results: &Results<'_>,
    ) -> Result<()> {
        let worst = worst.ok_or_else(|| failed("--explain", "no longest latency was measured"))?;
        worst.explain(folder, &self.targets)?;
        let explained = worst.load(folder).ok_or_else(|| {
            let why = "the cell was measured on another kernel than explained, or the clock was set \
                       back in between";
            failed("--explain", why)
        })?;
        results.write(folder.0, Some(explained))
    }
}

/// Writes the records of all cells.
fn store(folder: Folder<'_>, cells: &[CellPlans<'_>], records: &[CellRecords]) -> Result<()> {
    let mut all = cells.iter().zip(records);
    all.try_for_each(|(cell, records)| {
        folder.store(cell.label, records.as_deref().unwrap_or_default())
    })
}

/// Prints the warnings of the records, each once, with the first cell that has it. Warnings about
/// the state of the machine are left out: all cells share them.
fn report_warnings(file: &StudyFile, records: &[CellRecords]) {
    let mut reported: Vec<&str> = Vec::new();
    for (cell, records) in file.study.cells.iter().zip(records) {
        let warnings = records.iter().flatten().flat_map(|record| &record.warnings);
        for warning in warnings.filter(|warning| warning.code != WarningCode::Machine) {
            if !reported.contains(&warning.text.as_str()) {
                reported.push(&warning.text);
                format::say(&format!("cell {}: {}", cell.label, warning.text));
            }
        }
    }
}

/// Separates the records of the cells from the failures, with the index of the cell of each. A
/// record that can't be compared with those of the other cells is a failure too.
fn separate(
    file: &StudyFile,
    measured: Vec<CellResult>,
) -> (Vec<CellRecords>, Vec<(usize, Failure)>) {
    let mut failures = Vec::new();
    let records = measured.into_iter().enumerate().map(|(nth, result)| match result {
        Ok(records) => Some(records),
        Err(failure) => {
            failures.push((nth, failure));
            None
        }
    });
    let mut records: Vec<CellRecords> = records.collect();
    let mismatches = file.study.mismatches(&records).into_iter();
    // A machine that runs one kernel was booted with several for the cells of a study.
    let booted =
        |why: &Mismatch| !file.stand_ins.is_empty() && matches!(why, Mismatch::Kernel { .. });
    for (nth, why) in mismatches.filter(|(_, why)| !booted(why)) {
        records[nth] = None;
        failures.push((nth, Failure::failed(format!("{why}: measure it again"))));
    }
    failures.sort_by_key(|(nth, _)| *nth);
    (records, failures)
}

fn report_files(file: &StudyFile, folder: &Path) {
    let pictures = if file.study.pictures.is_empty() { "" } else { ", pictures" };
    let claims = if file.study.claims.is_empty() { "" } else { ", claims.csv" };
    let tables = format!("table.md, table.csv{claims}");
    let folder = folder.display();
    format::say(&format!("wrote to {folder}: {tables}, report.html{pictures}, records"));
}

/// Prints the cells that failed, and the consequence for the `table`. Fails as unsupported if every
/// cell is unsupported.
fn report_failures(file: &StudyFile, failures: &[(usize, Failure)], table: &str) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    for (nth, failure) in failures {
        let label = &file.study.cells[*nth].label;
        format::say(&format!("cell {}, {label}: {failure}", nth + 1));
    }
    let (failed, all) = (failures.len(), file.study.cells.len());
    let why = format!("{failed} of {all} cells could not be measured: {table}");
    let mut failures = failures.iter().map(|(_, failure)| failure);
    let is_failed =
        |failure: &Failure| matches!(failure.kind, FailureKind::Failed | FailureKind::Unrestored);
    Err(if failures.clone().all(|failure| failure.kind == FailureKind::Unsupported) {
        Failure::unsupported(why)
    } else if !failures.clone().any(is_failed)
        && failures.any(|failure| failure.kind == FailureKind::CutShort)
    {
        Failure::cut_short(why)
    } else {
        Failure::failed(why)
    })
}
