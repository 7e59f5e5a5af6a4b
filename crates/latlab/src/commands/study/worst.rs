//! Finding out why the worst of a study was late: the cell that has it, measured once more.

use super::Found;
use super::judging::Judge;
use super::kept::Kept;
use super::measuring::whole;
use crate::commands::elsewhere::Elsewhere;
use crate::failure::{Result, failed};
use crate::format::live;
use crate::format::progress::Bar;
use crate::study::Source;
use crate::target;
use latlab_core::plan::{ExplainPlan, Plan};
use latlab_core::record::Record;
use latlab_core::study::figure::Figure;
use latlab_core::study::findings::Findings;
use latlab_core::study::pieces::{self, LONGEST};
use latlab_core::time::Nanos;
use latlab_sys::signal::Signals;
use std::cmp::Reverse;

/// The repetition of a cell that has the longest latency of the table.
pub(super) struct Worst<'a> {
    label: &'a str,
    plan: Plan,
    /// With what it was measured.
    basis: Option<String>,
    limit: Option<Nanos>,
}

/// Refuses, before anything is measured, a study of which no worst can be explained.
pub(super) fn check(source: &Source, plans: &[Vec<Plan>]) -> Result<()> {
    if !source.study.figures.iter().any(Figure::is_worst) {
        let why = "--explain: no figure of this study is a longest latency (take = \"max\")";
        return Err(failed(&source.name, why));
    }
    if plans.iter().flatten().any(|plan| pieces::number(plan.length, LONGEST) > 1) {
        let why = format!("cells of more than {LONGEST} are not explained: give a shorter --for");
        return Err(failed("--explain", why));
    }
    Ok(())
}

impl<'a> Worst<'a> {
    /// None where the table has no latency that a sample of a probe has.
    pub(super) fn of(
        source: &'a Source,
        plans: &[Vec<Plan>],
        findings: &Findings<'_>,
        records: &[Found],
    ) -> Option<Worst<'a>> {
        let worst = source.study.worst(findings)?;
        let longest = |record: &Record| worst.figure.series(record).iter().map(|one| one.max).max();
        let repetitions = plans[worst.cell].iter().zip(records[worst.cell].iter().flatten());
        let (plan, record) = repetitions.min_by_key(|(_, record)| Reverse(longest(record)))?;
        Some(Worst {
            label: &source.study.cells[worst.cell].label,
            plan: plan.clone(),
            basis: record.fingerprint.clone(),
            limit: source.study.limit,
        })
    }

    fn explaining(&self) -> Plan {
        Plan { explain: Some(ExplainPlan::default()), ..self.plan.clone() }
    }

    /// What is known of it, if it was found out with what the table was measured with.
    pub(super) fn known(&self, kept: Kept<'_>) -> Option<Record> {
        kept.why(&self.explaining()).filter(|record| record.fingerprint == self.basis)
    }

    /// Finds out, unless that is known, and keeps it.
    pub(super) fn explain(&self, kept: Kept<'_>, elsewhere: &Elsewhere) -> Result<()> {
        if !elsewhere.is_fresh() && self.known(kept).is_some() {
            return Ok(());
        }
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        let mut judge = Judge::new(elsewhere, &signals);
        let (mut watch, mut bar) = (live::view(), Bar::new(&signals));
        let mut errand = elsewhere.errand(&signals, watch.as_mut(), &mut bar);
        errand.limit = errand.limit.or(self.limit);
        let explained = target::find(&self.plan.target)?.explain(&self.explaining(), &mut errand);
        drop(bar);
        let record = explained.map_err(|failure| failure.about("--explain"))?.record;
        whole(&record)?;
        let record = judge.with_basis(self.label, &self.plan, record);
        drop(judge);
        std::mem::forget(signals);
        kept.keep_why(&record)
    }
}
