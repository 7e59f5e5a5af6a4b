//! What a study has kept in a folder: the records of its cells, and the pieces of long ones.

use crate::commands::record_in;
use crate::failure::{Result, failed};
use crate::study::Source;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_sys::file::write_atomically;
use std::path::{Path, PathBuf};

/// What came of a cell: the records of its repetitions, or why there are none.
pub(super) type Measured = Result<Vec<Record>>;

/// The file that says why the worst was late.
const WHY: &str = "worst.json";

/// A study's folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept<'a>(pub(super) &'a Path);

impl Kept<'_> {
    /// Makes sure that it can hold records.
    pub(super) fn begin(self) -> Result<()> {
        make(&self.0.join("records"))
    }

    /// The records of each cell.
    pub(super) fn cells(self, source: &Source, plans: &[Vec<Plan>]) -> Vec<Measured> {
        let cells = source.study.cells.iter().zip(plans);
        cells.map(|(cell, plans)| self.cell(&cell.label, plans)).collect()
    }

    /// The records of one, which are of these plans.
    pub(super) fn cell(self, label: &str, plans: &[Plan]) -> Measured {
        let paths = (1..=plans.len()).map(|nth| self.record(label, nth));
        let records: Vec<Record> = paths.map(|path| record_in(&path)).collect::<Result<_>>()?;
        if !records.iter().zip(plans).all(|(record, plan)| carries_out(&record.plan, plan)) {
            return Err(failed(label, "its record is of another plan: measure it again"));
        }
        if records.iter().any(|record| record.fingerprint != records[0].fingerprint) {
            let why = "its repetitions were measured with several latlabs, kernels or QEMUs";
            return Err(failed(label, format!("{why}: measure it again")));
        }
        Ok(records)
    }

    /// Keeps the records of a cell.
    pub(super) fn keep(self, label: &str, records: &[Record]) -> Result<()> {
        let write = |(nth, record): (usize, &Record)| write(&self.record(label, nth + 1), record);
        records.iter().enumerate().try_for_each(write)
    }

    /// Has no records of a cell any more, so that those that come are new ones.
    pub(super) fn forget(self, label: &str, plans: &[Plan]) -> Result<()> {
        let gone = |path: PathBuf| match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(failed(&path.display().to_string(), e))
            }
            _ => Ok(()),
        };
        (1..=plans.len()).try_for_each(|nth| gone(self.record(label, nth)))
    }

    fn record(self, label: &str, nth: usize) -> PathBuf {
        self.0.join("records").join(format!("{}.json", name(label, nth)))
    }

    /// The record of a piece of a cell's repetition, if it is there and of this plan.
    pub(super) fn piece(self, place: Place<'_>, plan: &Plan) -> Option<Record> {
        let record = record_in(&self.path(place)).ok()?;
        carries_out(&record.plan, plan).then_some(record)
    }

    /// Keeps it.
    pub(super) fn keep_piece(self, place: Place<'_>, record: &Record) -> Result<()> {
        make(&self.0.join("pieces"))?;
        write(&self.path(place), record)
    }

    /// Why the worst was late, as a record, if it is there and of this plan.
    pub(super) fn why(self, plan: &Plan) -> Option<Record> {
        let record = record_in(&self.0.join(WHY)).ok()?;
        carries_out(&record.plan, plan).then_some(record)
    }

    /// Keeps it.
    pub(super) fn keep_why(self, record: &Record) -> Result<()> {
        write(&self.0.join(WHY), record)
    }

    fn path(self, place: Place<'_>) -> PathBuf {
        let Place { label, repetition, piece } = place;
        self.0.join("pieces").join(format!("{}.{piece}.json", name(label, repetition)))
    }
}

/// Which piece of which repetition of a cell, both from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) label: &'a str,
    pub(super) repetition: usize,
    pub(super) piece: usize,
}

/// What a cell's repetition is called; the first is called as the cell. No label has an `@`.
pub(super) fn name(label: &str, nth: usize) -> String {
    if nth == 1 { label.to_owned() } else { format!("{label}@{nth}") }
}

/// Whether a record's plan is this one, but for the CPUs, which each machine has found itself.
fn carries_out(kept: &Plan, plan: &Plan) -> bool {
    *kept == Plan { cpus: kept.cpus.clone(), ..plan.clone() }
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| failed(&folder.display().to_string(), e))
}

fn write(path: &Path, record: &Record) -> Result<()> {
    write_atomically(path, record.to_json().as_bytes())
        .map_err(|e| failed(&path.display().to_string(), e))
}
