//! The cell with the longest latency of a study, measured once more and explained.

use super::CellRecords;
use super::fingerprints::Fingerprints;
use super::folder::Folder;
use crate::commands::block_signals;
use crate::commands::target_options::TargetOptions;
use crate::study::StudyFile;
use crate::target;
use latlab_core::machine::TimeDomain;
use latlab_core::plan::{ExplainPlan, Plan};
use latlab_core::record::Record;
use latlab_core::study::figure::StudyFigure;
use latlab_core::study::findings::Findings;
use latlab_core::study::pieces::{self, LONGEST};
use latlab_core::time::Nanos;
use latlab_format::live;
use latlab_format::progress::Bar;
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::Limit;
use latlab_part::failure::{Result, failed};

/// The repetition of a cell that has the longest latency of the table.
pub(super) struct WorstCell<'a> {
    label: &'a str,
    plan: Plan,
    record: &'a Record,
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
    /// Returns none if no latency in the table comes from a probe's sample.
    pub(super) fn find(
        file: &'a StudyFile,
        plans: &[Vec<Plan>],
        findings: &Findings<'_>,
        records: &'a [CellRecords],
    ) -> Option<WorstCell<'a>> {
        let worst = file.study.worst(findings)?;
        let repetitions = records[worst.cell].as_deref()?;
        let nth = worst.figure.worst_repetition(repetitions)?;
        Some(WorstCell {
            label: &file.study.cells[worst.cell].label,
            plan: plans[worst.cell].get(nth)?.clone(),
            record: &repetitions[nth],
            limit: file.study.limit,
        })
    }

    fn explain_plan(&self) -> Plan {
        Plan { explain: Some(ExplainPlan::default()), ..self.plan.clone() }
    }

    /// Reads the stored explanation, if it is of the record in the table.
    pub(super) fn load(&self, folder: Folder<'_>) -> Option<Record> {
        let stored = folder.load_worst(&self.explain_plan())?;
        explains(&stored, self.record).then_some(stored)
    }

    /// Measures the cell once more with explanation and stores the record, unless it is there.
    pub(super) fn explain(&self, folder: Folder<'_>, options: &TargetOptions) -> Result<()> {
        if !options.is_fresh() && self.load(folder).is_some() {
            return Ok(());
        }
        let signals = block_signals()?;
        let mut fingerprints = Fingerprints::new(options, &signals);
        let (mut watch, mut bar) = (live::view(None), Bar::new(&signals));
        let mut session = options.session(&signals, watch.as_mut(), &mut bar);
        session.limit = session.limit.or(self.limit.map(Limit::WallClock));
        let target = target::find(&self.plan.target)?;
        let explained = target.explain(&Prepared::of(&self.explain_plan())?, &mut session);
        drop(bar);
        let record = explained.and_then(Outcome::whole);
        let record = record.map_err(|failure| failure.about("--explain"))?;
        let record = fingerprints.add_to(self.label, &self.plan, record);
        drop(fingerprints);
        folder.store_worst(&record)
    }
}

/// Whether `explained` is of the same programs and kernel as `record`. Where times are not exactly
/// repeatable, a record that was measured after the explanation has other samples.
fn explains(explained: &Record, record: &Record) -> bool {
    let repeats = record.machine.time_domain == TimeDomain::Instructions;
    explained.fingerprint == record.fingerprint
        && explained.machine.kernel_difference(&record.machine).is_none()
        && (repeats || explained.started >= record.started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::cpulist::CpuList;
    use latlab_core::machine::Machine;
    use latlab_core::plan::Length;

    fn record(kernel: &str, started: u64, time_domain: TimeDomain) -> Record {
        let plan = Plan::bare("native", CpuList::default(), Length::Count(1));
        let machine = Machine { kernel: kernel.to_owned(), time_domain, ..Machine::default() };
        let fingerprint = Some("0a".to_owned());
        Record { fingerprint, ..Record::new("latlab", Nanos(started), plan, machine) }
    }

    #[test]
    fn explanation_of_another_kernel_or_an_earlier_run_is_outdated() {
        let native = |kernel, started| record(kernel, started, TimeDomain::Silicon);
        assert!(explains(&native("7.3", 2), &native("7.3", 1)));
        assert!(!explains(&native("7.3", 2), &native("7.2", 1)));
        assert!(!explains(&native("7.3", 2), &native("7.3", 3)));
        let other = Record { fingerprint: Some("0b".to_owned()), ..native("7.3", 1) };
        assert!(!explains(&native("7.3", 2), &other));
        let guest = |started| record("7.3", started, TimeDomain::Instructions);
        assert!(explains(&guest(2), &guest(3)));
    }
}
