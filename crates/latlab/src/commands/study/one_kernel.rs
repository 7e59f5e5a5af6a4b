//! Cells on a machine that runs one kernel: those that differ only in the kernel are measured once,
//! and count for the cells that model this kernel.

use super::cells;
use super::folder::{CellPlans, CellResult, Folder};
use crate::commands::target_options::TargetOptions;
use crate::failure::{Failure, Result};
use crate::format;
use crate::study::StudyFile;
use latlab_core::study::claim::ClaimVerdict;
use latlab_core::study::findings::Findings;

/// Measures the cells. The result of a cell that models another kernel is [`Failure::OtherKernel`].
pub(super) fn measure(
    file: &StudyFile,
    all: &[CellPlans<'_>],
    folder: Option<Folder<'_>>,
    options: &TargetOptions,
) -> Result<Vec<CellResult>> {
    let mut different: Vec<CellPlans<'_>> = Vec::new();
    for cell in all {
        if !different.iter().any(|other| other.plans == cell.plans) {
            different.push(*cell);
        }
    }
    let measured = cells::measure(file, &different, folder, options)?;
    let result = |cell: &CellPlans<'_>| -> CellResult {
        let nth = different.iter().position(|other| other.plans == cell.plans);
        measured[nth.expect("each plan is one of those that differ")].clone()
    };
    Ok(all.iter().enumerate().map(|(nth, cell)| check(file, nth, result(cell))).collect())
}

/// Refuses the records of the nth cell if they are of another kernel than it models.
pub(super) fn check(file: &StudyFile, nth: usize, records: CellResult) -> CellResult {
    let records = records?;
    if let Some(kernel) = file.stand_ins.get(nth) {
        records.iter().try_for_each(|record| kernel.check(&record.machine))?;
    }
    Ok(records)
}

/// Takes out the cells that model another kernel, which is no failure, and says which they are.
pub(super) fn without_others(
    file: &StudyFile,
    failures: Vec<(usize, Failure)>,
) -> Vec<(usize, Failure)> {
    let (others, failures): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(|(_, failure)| matches!(failure, Failure::OtherKernel(_)));
    for (nth, failure) in others {
        format::say(&format!(
            "cell {} can't be asked here: {failure}",
            file.study.cells[nth].label
        ));
    }
    failures
}

/// The failure of a study without any cell of this kernel.
pub(super) fn none_here(file: &StudyFile) -> Failure {
    let name = &file.name;
    Failure::Unsupported(format!("{name}: none of its cells is of the kernel that runs here"))
}

/// Says how many claims can't be asked on this kernel.
pub(super) fn report_claims(file: &StudyFile, findings: &Findings<'_>) {
    let asked = |verdict: &ClaimVerdict| !matches!(verdict, ClaimVerdict::NotMeasured(_));
    let all = findings.claims.len();
    let number = findings.claims.iter().filter(|(_, one)| !asked(&one.verdict)).count();
    if !file.stand_ins.is_empty() && number > 0 {
        format::say(&format!(
            "{number} of {all} claims can't be asked here: they need other kernels, listed as not \
             measured; boot those, measure with the same --out, and join all with --merge"
        ));
    }
}
