//! The folder of a study: the records of its cells, and of the pieces of long ones.

use crate::commands::record_in;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_part::failure::{Context as _, Result, failed};
use latlab_sys::file::write_atomically;
use std::path::{Path, PathBuf};

/// The records of a cell's repetitions, or why there are none.
pub(super) type CellResult = Result<Vec<Record>>;

/// The file with the record that explains the longest latency.
const WORST: &str = "worst.json";

/// A cell of a study: its label, and the plans of its repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPlans<'a> {
    pub(super) label: &'a str,
    pub(super) plans: &'a [Plan],
}

/// A piece of a repetition of a cell; repetitions and pieces are counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceId<'a> {
    pub(super) label: &'a str,
    pub(super) repetition: usize,
    pub(super) piece: usize,
}

/// A study's folder, as given by `--out`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folder<'a>(pub(super) &'a Path);

impl Folder<'_> {
    /// Creates the folder of the records.
    pub(super) fn create(self) -> Result<()> {
        create(&self.0.join("records"))
    }

    /// Reads the records of a cell. Fails where one is missing, is of another plan, or was measured
    /// with another latlab, kernel or QEMU than the others.
    pub(super) fn load(self, cell: CellPlans<'_>) -> CellResult {
        let CellPlans { label, plans } = cell;
        let paths = (1..=plans.len()).map(|repetition| self.record(label, repetition));
        let records: Vec<Record> = paths.map(|path| record_in(&path)).collect::<Result<_>>()?;
        if !records.iter().zip(plans).all(|(record, plan)| is_same_plan(&record.plan, plan)) {
            return Err(failed(label, "its record is of another plan: measure it again"));
        }
        check_alike(label, records)
    }

    /// Writes the records of a cell.
    pub(super) fn store(self, label: &str, records: &[Record]) -> Result<()> {
        let mut records = records.iter().enumerate();
        records.try_for_each(|(nth, record)| write(&self.record(label, nth + 1), record))
    }

    /// Removes the records of a cell, so that any that appear are new.
    pub(super) fn remove(self, cell: CellPlans<'_>) -> Result<()> {
        let remove = |path: PathBuf| match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(failed(&path.display().to_string(), e))
            }
            _ => Ok(()),
        };
        let mut repetitions = 1..=cell.plans.len();
        repetitions.try_for_each(|repetition| remove(self.record(cell.label, repetition)))
    }

    fn record(self, label: &str, repetition: usize) -> PathBuf {
        self.0.join("records").join(format!("{}.json", record_name(label, repetition)))
    }

    /// Reads the record of a piece, if there is one of this plan.
    pub(super) fn load_piece(self, piece: PieceId<'_>, plan: &Plan) -> Option<Record> {
        load(&self.piece(piece), plan)
    }

    /// Writes the record of a piece.
    pub(super) fn store_piece(self, piece: PieceId<'_>, record: &Record) -> Result<()> {
        create(&self.0.join("pieces"))?;
        write(&self.piece(piece), record)
    }

    fn piece(self, piece: PieceId<'_>) -> PathBuf {
        let PieceId { label, repetition, piece } = piece;
        self.0.join("pieces").join(format!("{}.{piece}.json", record_name(label, repetition)))
    }

    /// Reads the record that explains the longest latency, if there is one of this plan.
    pub(super) fn load_worst(self, plan: &Plan) -> Option<Record> {
        load(&self.0.join(WORST), plan)
    }

    /// Writes the record that explains the longest latency.
    pub(super) fn store_worst(self, record: &Record) -> Result<()> {
        write(&self.0.join(WORST), record)
    }
}

/// Refuses the repetitions of a cell if they depend on different programs.
pub(super) fn check_alike(label: &str, records: Vec<Record>) -> CellResult {
    if records.iter().any(|record| record.fingerprint != records[0].fingerprint) {
        let why = "its repetitions were measured with different builds of latlab, kernels or \
                   versions of QEMU: measure it again";
        return Err(failed(label, why));
    }
    Ok(records)
}

/// The name of a repetition's record: the cell's label, from the second on with an `@` and the
/// number. No label contains an `@`.
pub(super) fn record_name(label: &str, repetition: usize) -> String {
    if repetition == 1 { label.to_owned() } else { format!("{label}@{repetition}") }
}

/// Whether a record's plan is this one. The CPUs may differ: each machine selects its own.
fn is_same_plan(recorded: &Plan, plan: &Plan) -> bool {
    *recorded == Plan { cpus: recorded.cpus.clone(), ..plan.clone() }
}

fn load(path: &Path, plan: &Plan) -> Option<Record> {
    record_in(path).ok().filter(|record| is_same_plan(&record.plan, plan))
}

fn create(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).at(folder)
}

fn write(path: &Path, record: &Record) -> Result<()> {
    write_atomically(path, record.to_json().as_bytes()).at(path)
}
