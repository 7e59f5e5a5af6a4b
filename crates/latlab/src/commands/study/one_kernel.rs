//! Cells on a machine that runs one kernel. Cells that differ only in the kernel are measured once;
//! the result counts for the cells that model this kernel.

use super::cells;
use super::folder::{CellPlans, CellResult, Folder};
use crate::commands::target_options::TargetOptions;
use crate::study::StudyFile;
use latlab_core::study::claim::ClaimVerdict;
use latlab_core::study::findings::Findings;
use latlab_format as format;
use latlab_part::failure::{Failure, FailureKind, Result};

/// Measures the cells. The result of a cell that models another kernel is [`Failure::other_kernel`].
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

/// Separates the failures from the cells that model another kernel, which is no failure. Says which
/// cells these are, and returns their labels.
pub(super) fn separate_others(
    file: &StudyFile,
    failures: Vec<(usize, Failure)>,
) -> (Vec<&str>, Vec<(usize, Failure)>) {
    let (others, failures): (Vec<_>, Vec<_>) =
        failures.into_iter().partition(|(_, failure)| failure.kind == FailureKind::OtherKernel);
    let label = |(nth, failure): (usize, Failure)| {
        let label = file.study.cells[nth].label.as_str();
        format::say(&format!("cell {label} can't be asked here: {failure}"));
        label
    };
    (others.into_iter().map(label).collect(), failures)
}

/// The failure of a study without any cell of this kernel.
pub(super) fn none_here(file: &StudyFile) -> Failure {
    let name = &file.name;
    Failure::unsupported(format!("{name}: none of its cells is of the kernel that runs here"))
}

/// Says how many claims can't be judged on this kernel, because they are about these cells of other
/// kernels.
pub(super) fn report_claims(findings: &Findings<'_>, others: &[&str]) {
    // The name of a result is the label of its cell, a dot, and the name of its figure.
    let is_of = |result: &str, cell: &str| {
        result.strip_prefix(cell).is_some_and(|rest| rest.starts_with('.'))
    };
    let is_about_others = |verdict: &ClaimVerdict| match verdict {
        ClaimVerdict::NotMeasured(missing) => {
            missing.iter().any(|result| others.iter().any(|cell| is_of(result, cell)))
        }
        _ => false,
    };
    let all = findings.claims.len();
    let number = findings.claims.iter().filter(|(_, one)| is_about_others(&one.verdict)).count();
    if number > 0 {
        format::say(&format!(
            "{number} of {all} claims can't be asked here: they need other kernels, listed as not \
             measured; boot those, measure with the same --out, and join all with --merge"
        ));
    }
}
