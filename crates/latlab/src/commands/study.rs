//! `latlab study`: a table or a figure of a paper, redone.

mod keeping;

use self::keeping::{Kept, file, keep, shown};
use super::elsewhere::Elsewhere;
use crate::failure::{Failure, Result, failed};
use crate::format::progress::Bar;
use crate::format::{self, live};
use crate::study::{self, Source};
use crate::target;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_sys::signal::Signals;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab study quick --out quick/              three kernels, two loads: about a minute
  latlab list studies                          what there is
  latlab study mine.toml --check               is this file of mine a study?
  latlab study mine.toml --cell 3 --out mine/  one cell, on one of many computers; then, with all
                                               records in mine/records: --merge --out mine/";

/// Redo a table or a figure of a paper on real kernels, beside what it printed
///
/// A study measures its cells, each a kernel with a load and more, takes its figures of their
/// records, and says of each claim of the paper whether it holds, differs, or was not measured.
/// What the laboratory has measured is kept: a study that was ended goes on where it stopped, and
/// the same study gives the same bytes. docs/studies.md says how to write one.
///
/// Exit: 0, whether claims hold or not; 2 where a cell could not be measured.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that may be given")]
pub(super) struct Study {
    /// A study (see: latlab list studies), or a file of yours
    #[arg(value_name = "NAME|FILE.toml")]
    name: String,
    /// Keep the table (table.md, table.csv), a report, each picture as SVG, and the records in this
    /// folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep each picture as PNG, too
    #[arg(long, requires = "out", conflicts_with_all = ["check", "list_cells", "cell"])]
    png: bool,
    /// Say whether anything is wrong with the study, and measure nothing
    #[arg(long, conflicts_with_all = ["list_cells", "cell", "merge"])]
    check: bool,
    /// List the cells with their numbers, and measure nothing
    #[arg(long, conflicts_with_all = ["cell", "merge"])]
    list_cells: bool,
    /// Measure this cell only, and keep its records in DIR/records
    #[arg(long, value_name = "N", requires = "out", conflicts_with = "merge")]
    cell: Option<usize>,
    /// Measure nothing: take the records that are in DIR/records
    #[arg(long, requires = "out")]
    merge: bool,
    #[command(flatten)]
    elsewhere: Elsewhere,
}

/// What came of a cell: the records of its repetitions, or why there are none.
type Measured = Result<Vec<Record>>;

/// The same, where it is of no interest why.
type Found = Option<Vec<Record>>;

impl Study {
    pub(super) fn run(&self) -> Result<()> {
        let source = study::find(&self.name)?;
        let plans = source.plans()?;
        if self.check {
            return format::put(&format::study::checked(&source.name, &source.study));
        }
        if self.list_cells {
            return format::put(&format::study::cells(&source.study, &plans));
        }
        if let Some(out) = &self.out {
            std::fs::create_dir_all(out.join("records")).map_err(|e| failed(&shown(out), e))?;
        }
        if let Some(number) = self.cell {
            return self.one_cell(&source, &plans, number);
        }
        let measured =
            if self.merge { self.kept(&source, &plans) } else { self.measure(&source, &plans)? };
        let (records, failures) = apart(measured);
        warn(&source, &records);
        let findings = source.study.findings(&records);
        if let Some(out) = &self.out {
            if !self.merge {
                for (cell, records) in source.study.cells.iter().zip(&records) {
                    keep(out, &cell.label, records.as_deref().unwrap_or_default())?;
                }
            }
            let kept = Kept { source: &source, findings: &findings, records: &records };
            kept.write(out, self.png)?;
        }
        format::put(&format::study::text(&source.study, &findings, &records))?;
        if let Some(out) = &self.out {
            let out = shown(out);
            let pictures = if source.study.pictures.is_empty() { "" } else { ", pictures" };
            let what = format!("table.md, table.csv, report.html{pictures}, records");
            format::say(&format!("kept in {out}: {what}"));
        }
        verdict(&source, &failures)
    }

    /// Measures a single cell and keeps its records.
    fn one_cell(&self, source: &Source, plans: &[Vec<Plan>], number: usize) -> Result<()> {
        let nth = number.checked_sub(1).filter(|nth| *nth < plans.len()).ok_or_else(|| {
            let cells = plans.len();
            Failure::Failed(format!("there is no cell {number}: cells are 1 to {cells}"))
        })?;
        let records = self.measure(source, &plans[nth..=nth])?.remove(0)?;
        let label = &source.study.cells[nth].label;
        keep(self.out.as_deref().unwrap_or(Path::new(".")), label, &records)
    }

    /// Measures all cells, some at a time.
    fn measure(&self, source: &Source, plans: &[Vec<Plan>]) -> Result<Vec<Measured>> {
        let all: Vec<Plan> = plans.iter().flatten().cloned().collect();
        let target = target::find(&all[0].target)?;
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        let mut watch = live::cells(all.len());
        let mut bar = Bar::new(&signals);
        let mut errand = self.elsewhere.errand(&signals, watch.as_mut(), &mut bar);
        errand.limit = errand.limit.or(source.study.limit);
        let mut outcomes = target.run(&all, &mut errand).into_iter();
        drop(bar);
        std::mem::forget(signals);
        let of = |cell: &Vec<Plan>| -> Measured {
            let outcomes: Vec<_> = outcomes.by_ref().take(cell.len()).collect();
            outcomes.into_iter().map(|outcome| whole(outcome?.record)).collect()
        };
        Ok(plans.iter().map(of).collect())
    }

    /// The records that were kept before.
    fn kept(&self, source: &Source, plans: &[Vec<Plan>]) -> Vec<Measured> {
        let folder = self.out.as_deref().unwrap_or(Path::new(".")).join("records");
        let cells = source.study.cells.iter().zip(plans);
        let read = |(cell, plans): (&latlab_core::study::Cell, &Vec<Plan>)| -> Measured {
            let paths = (1..=plans.len()).map(|nth| folder.join(file(&cell.label, nth)));
            let records: Vec<Record> =
                paths.map(|path| super::record_in(&path)).collect::<Result<_>>()?;
            if records.iter().zip(plans).all(|(record, plan)| carries_out(&record.plan, plan)) {
                return Ok(records);
            }
            let why = "its record is of another plan: measure it again";
            Err(failed(&cell.label, why))
        };
        cells.map(read).collect()
    }
}

/// Refuses what the user has ended early: that is no repetition.
fn whole(record: Record) -> Result<Record> {
    match record.warnings.iter().find(|warning| warning.code == "interrupted") {
        Some(warning) => Err(Failure::Failed(warning.text.clone())),
        None => Ok(record),
    }
}

/// What records warn of, each once, with the first cell that does; but for the state of the
/// machine, which is that of all.
fn warn(source: &Source, records: &[Found]) {
    let mut said: Vec<&str> = Vec::new();
    for (cell, records) in source.study.cells.iter().zip(records) {
        let warnings = records.iter().flatten().flat_map(|record| &record.warnings);
        for warning in warnings.filter(|warning| warning.code != "machine") {
            if !said.contains(&warning.text.as_str()) {
                said.push(&warning.text);
                format::say(&format!("cell {}: {}", cell.label, warning.text));
            }
        }
    }
}

/// Whether a record's plan is this one, but for the CPUs, which each machine has found itself.
fn carries_out(kept: &Plan, plan: &Plan) -> bool {
    *kept == Plan { cpus: kept.cpus.clone(), ..plan.clone() }
}

/// The records of all cells, and what went wrong in which.
fn apart(measured: Vec<Measured>) -> (Vec<Found>, Vec<(usize, Failure)>) {
    let mut failures = Vec::new();
    let records = measured.into_iter().enumerate().map(|(nth, one)| match one {
        Ok(records) => Some(records),
        Err(failure) => {
            failures.push((nth, failure));
            None
        }
    });
    (records.collect(), failures)
}

/// Says which cells could not be measured and why. The study can't be done here where that is true
/// of all of these.
fn verdict(source: &Source, failures: &[(usize, Failure)]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    for (nth, failure) in failures {
        let label = &source.study.cells[*nth].label;
        format::say(&format!("cell {}, {label}: {failure}", nth + 1));
    }
    let (failed, all) = (failures.len(), source.study.cells.len());
    let why = format!("{failed} of {all} cells could not be measured: the table is without them");
    if failures.iter().all(|(_, failure)| matches!(failure, Failure::Unsupported(_))) {
        return Err(Failure::Unsupported(why));
    }
    Err(Failure::Failed(why))
}
