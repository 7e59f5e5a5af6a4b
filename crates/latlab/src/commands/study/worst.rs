//! The cell with the longest latency of a study, measured once more and explained.

use super::CellRecords;
use super::fingerprints::Fingerprints;
use super::folder::Folder;
use crate::commands::target_options::TargetOptions;
use crate::engine::{Outcome, Prepared};
use crate::failure::{Result, failed};
use crate::format::live;
use crate::format::progress::Bar;
use crate::study::StudyFile;
use crate::target;
use latlab_core::plan::{ExplainPlan, Plan};
use latlab_core::record::Record;
use latlab_core::study::figure::StudyFigure;
use latlab_core::study::findings::Findings;
use latlab_core::study::pieces::{self, LONGEST};
use latlab_core::time::Nanos;
use latlab_sys::signal::Signals;

/// The repetition of a cell that has the longest latency of the table.
pub(super) struct WorstCell<'a> {
    label: &'a str,
    plan: Plan,
    /// The fingerprint of its record.
    fingerprint: Option<String>,
    /// The study's time limit for a cell.
    limit: Option<Nanos>,
}

/// Refuses a study whose longest latency can't be explained, before anything is measured.
pub(super) fn check(file: &StudyFile, plans: &[Vec<Plan>]) -> Result<()> {
    if !file.study.figures.iter().any(StudyFigure::is_worst) {
        let why = "--explain: no figure of this study is a longest latency (take = \"max\")";
        return Err(failed(&file.name, why));
    }
    if plans.iter().flatten().any(|plan| pieces::number(plan.length, LONGEST) > 1) {
        let why = format!("cells of more than {LONGEST} are not explained: give a shorter --for");
        return Err(failed("--explain", why));
    }
    Ok(())
}

impl<'a> WorstCell<'a> {
    /// Returns none where no latency in the table is that of a probe's sample.
    pub(super) fn find(
        file: &'a StudyFile,
        plans: &[Vec<Plan>],
        findings: &Findings<'_>,
        records: &[CellRecords],
    ) -> Option<WorstCell<'a>> {
        let worst = file.study.worst(findings)?;
        let repetitions = records[worst.cell].as_deref()?;
        let nth = worst.figure.worst_repetition(repetitions)?;
        Some(WorstCell {
            label: &file.study.cells[worst.cell].label,
            plan: plans[worst.cell].get(nth)?.clone(),
            fingerprint: repetitions[nth].fingerprint.clone(),
            limit: file.study.limit,
        })
    }

    fn explain_plan(&self) -> Plan {
        Plan { explain: Some(ExplainPlan::default()), ..self.plan.clone() }
    }

    /// Reads the stored explanation, if it has the same fingerprint as the record in the table.
    pub(super) fn load(&self, folder: Folder<'_>) -> Option<Record> {
        folder
            .load_worst(&self.explain_plan())
            .filter(|record| record.fingerprint == self.fingerprint)
    }

    /// Measures the cell once more with explanation and stores the record, unless it is there.
    pub(super) fn explain(&self, folder: Folder<'_>, options: &TargetOptions) -> Result<()> {
        if !options.is_fresh() && self.load(folder).is_some() {
            return Ok(());
        }
        let signals = Signals::block().map_err(|e| failed("signals can't be blocked", e))?;
        let mut fingerprints = Fingerprints::new(options, &signals);
        let (mut watch, mut bar) = (live::view(None), Bar::new(&signals));
        let mut session = options.session(&signals, watch.as_mut(), &mut bar);
        session.limit = session.limit.or(self.limit);
        let target = target::find(&self.plan.target)?;
        let explained = target.explain(&Prepared::of(&self.explain_plan())?, &mut session);
        drop(bar);
        let record = explained.and_then(Outcome::whole);
        let record = record.map_err(|failure| failure.about("--explain"))?;
        let record = fingerprints.add_to(self.label, &self.plan, record);
        drop(fingerprints);
        std::mem::forget(signals);
        folder.store_worst(&record)
    }
}
