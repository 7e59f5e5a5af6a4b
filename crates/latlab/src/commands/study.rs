//! `latlab study`: a table or a figure of a paper, redone.

mod array;
mod judging;
mod kept;
mod measuring;
mod results;
mod worst;

use self::kept::{Kept, Measured};
use self::results::Results;
use self::worst::Worst;
use super::elsewhere::Elsewhere;
use crate::failure::{Failure, Result, failed};
use crate::format;
use crate::study::{self, Source};
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_core::time::Nanos;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab study quick --out quick/              three kernels, two loads: about a minute
  latlab list studies                          what there is
  latlab study mine.toml --check               is this file of mine a study?
  latlab study abeni-loads-long --for 10h --out t2/
                                               ten hours of each cell, in pieces: ended, it goes on
  latlab study quick --engine slurm --out /shared/quick/
                                               on a cluster, each cell a task of an array job
  latlab study mine.toml --cell 3 --out mine/  one cell, on one of many computers; then, with all
                                               records in mine/records: --merge --out mine/";

/// Redo a table or a figure of a paper on real kernels, beside what it printed
///
/// A study measures its cells, each a kernel with a load and more, takes its figures of their
/// records, and says of each claim of the paper whether it holds, holds no more, differs, or was not
/// measured. What the laboratory has measured is kept: a study that was ended goes on where it
/// stopped, and the same study gives the same bytes. docs/studies.md says how to write one.
///
/// Exit: 0, whether claims hold or not; 2 where a cell could not be measured; 3 where none of those
/// can be measured on this machine.
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
    /// Measure each cell for so long, whatever the study says; what is longer than 5min is measured
    /// in pieces, which are kept in DIR/pieces
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    time: Option<Nanos>,
    /// Who has the cells measured: latlab here, or the nodes of a Slurm cluster, which share DIR;
    /// what DIR/records has is not measured again there
    #[arg(long, value_name = "ENGINE", default_value = "here", conflicts_with_all = ["check", "list_cells", "cell", "merge"])]
    engine: Engine,
    /// Find out why the worst of the table was late, as latlab explain does: its cell is measured once
    /// more, and the report says why
    #[arg(long, requires = "out", conflicts_with_all = ["check", "list_cells", "cell", "merge"])]
    explain: bool,
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

/// Who has cells measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// This latlab, where the study says
    Here,
    /// Slurm, by an array job with a task for each cell
    Slurm,
}

/// What came of a cell, where it is of no interest why nothing did.
type Found = Option<Vec<Record>>;

impl Study {
    pub(super) fn run(&self) -> Result<()> {
        let mut source = study::find(&self.name)?;
        if let Some(time) = self.time {
            let last = source.study.last(time);
            last.map_err(|why| failed(&self.name, format!("--for can't be: {why}")))?;
        }
        let source = source;
        let plans = source.plans()?;
        if self.check {
            return format::put(&format::study::checked(&source.name, &source.study));
        }
        if self.list_cells {
            return format::put(&format::study::cells(&source.study, &plans));
        }
        if self.explain {
            worst::check(&source, &plans)?;
        }
        let kept = self.out.as_deref().map(Kept);
        let labels = source.study.cells.iter().map(|cell| cell.label.as_str());
        let cells: Vec<(&str, &[Plan])> = labels.zip(plans.iter().map(Vec::as_slice)).collect();
        if let Some(number) = self.cell {
            return self.one_cell(&source, &cells, number);
        }
        kept.map_or(Ok(()), Kept::begin)?;
        let measured = match (self.merge, self.engine, kept) {
            (true, _, Some(kept)) => kept.cells(&source, &plans),
            (_, Engine::Slurm, Some(kept)) => array::measure(self, &source, &cells, kept)?,
            (_, Engine::Slurm, None) => {
                let why = "--engine slurm needs --out DIR, on a file system that all nodes share";
                return Err(Failure::Failed(why.to_owned()));
            }
            _ => measuring::measure(&source, &cells, kept, &self.elsewhere)?,
        };
        let (records, failures) = apart(&source, measured);
        if records.iter().all(Option::is_none) {
            return verdict(&source, &failures);
        }
        warn(&source, &records);
        let findings = source.study.findings(&records);
        let worst = Worst::of(&source, &plans, &findings, &records);
        let results = Results { source: &source, findings: &findings, records: &records };
        if let Some(kept) = kept {
            if !self.merge && self.engine == Engine::Here {
                for ((label, _), records) in cells.iter().zip(&records) {
                    kept.keep(label, records.as_deref().unwrap_or_default())?;
                }
            }
            results.write(kept.0, self.png, worst.as_ref().and_then(|worst| worst.known(kept)))?;
        }
        format::put(&format::study::text(&source.study, &findings, &records))?;
        let explained = match (kept, &worst) {
            (Some(kept), worst) if self.explain => self.explain(kept, worst.as_ref(), &results),
            _ => Ok(()),
        };
        if let Some(out) = &self.out {
            let out = out.display();
            let pictures = if source.study.pictures.is_empty() { "" } else { ", pictures" };
            let what = format!("table.md, table.csv, report.html{pictures}, records");
            format::say(&format!("kept in {out}: {what}"));
        }
        verdict(&source, &failures)?;
        explained
    }

    /// Finds out why the worst was late, and has the report say so.
    fn explain(
        &self,
        kept: Kept<'_>,
        worst: Option<&Worst<'_>>,
        results: &Results<'_>,
    ) -> Result<()> {
        let worst = worst.ok_or_else(|| failed("--explain", "no longest latency was measured"))?;
        worst.explain(kept, &self.elsewhere)?;
        results.write(kept.0, self.png, worst.known(kept))
    }

    /// Measures a single cell and keeps its records.
    fn one_cell(&self, source: &Source, cells: &[(&str, &[Plan])], number: usize) -> Result<()> {
        let nth = number.checked_sub(1).filter(|nth| *nth < cells.len()).ok_or_else(|| {
            let cells = cells.len();
            Failure::Failed(format!("there is no cell {number}: cells are 1 to {cells}"))
        })?;
        let kept = Kept(self.out.as_deref().unwrap_or(Path::new(".")));
        kept.begin()?;
        let measured = measuring::measure(source, &cells[nth..=nth], Some(kept), &self.elsewhere)?;
        measured.into_iter().try_for_each(|records| kept.keep(cells[nth].0, &records?))
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

/// The records of all cells, and what went wrong in which; those that can't stand beside those of
/// the other cells are as if they were not there.
fn apart(source: &Source, measured: Vec<Measured>) -> (Vec<Found>, Vec<(usize, Failure)>) {
    let mut failures = Vec::new();
    let records = measured.into_iter().enumerate().map(|(nth, one)| match one {
        Ok(records) => Some(records),
        Err(failure) => {
            failures.push((nth, failure));
            None
        }
    });
    let mut records: Vec<Found> = records.collect();
    for (nth, stranger) in source.study.strangers(&records) {
        records[nth] = None;
        failures.push((nth, Failure::Failed(format!("{stranger}: measure it again"))));
    }
    failures.sort_by_key(|(nth, _)| *nth);
    (records, failures)
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
    let without = if failed == all { "there is no table" } else { "the table is without them" };
    let why = format!("{failed} of {all} cells could not be measured: {without}");
    if failures.iter().all(|(_, failure)| matches!(failure, Failure::Unsupported(_))) {
        return Err(Failure::Unsupported(why));
    }
    Err(Failure::Failed(why))
}
