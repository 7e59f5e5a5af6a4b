//! Merging of records: repetitions of one plan on one kind of machine.

use super::sample::worst_first;
use super::{Record, Work};
use crate::plan::Plan;

/// Why two records can't be merged or compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// Their time domains differ.
    #[error(
        "one record is in {0} time, the other in {1} time: their nanoseconds are not comparable"
    )]
    TimeDomain(&'static str, &'static str),
    /// They are not repetitions of one plan.
    #[error("their plans differ: only repetitions of the same plan can be merged")]
    Plan,
    /// They ran on different kernels or machines.
    #[error("their machines differ in {0}: only runs on the same kind of machine can be merged")]
    Machine(&'static str),
    /// They depend on different programs.
    #[error("they were measured with different builds of latlab, kernels or versions of QEMU")]
    Fingerprint,
}

impl Record {
    /// Refuses records of different time domains.
    pub fn same_time(&self, other: &Record) -> Result<(), Incomparable> {
        let domains = (self.machine.time_domain, other.machine.time_domain);
        if domains.0 == domains.1 {
            return Ok(());
        }
        Err(Incomparable::TimeDomain(domains.0.word(), domains.1.word()))
    }

    /// Merges a repetition of the same plan on the same kind of machine into this record. The
    /// operation is associative, and keeps all samples, figures, changes and warnings.
    pub fn merge(&mut self, other: &Record) -> Result<(), Incomparable> {
        self.same_time(other)?;
        if self.plan != other.plan {
            return Err(Incomparable::Plan);
        }
        self.same_kind_of_machine(other)?;
        if self.fingerprint != other.fingerprint {
            self.fingerprint = None;
        }
        self.runs = self.runs.saturating_add(other.runs);
        self.started = self.started.min(other.started);
        self.merge_series(other);
        self.scans.extend(other.scans.iter().cloned());
        self.figures.extend(other.figures.iter().cloned());
        self.worst.extend(other.worst.iter().cloned());
        worst_first(&mut self.worst);
        match (&mut self.explained, &other.explained) {
            (Some(mine), Some(theirs)) => mine.add(theirs),
            (mine @ None, theirs) => mine.clone_from(theirs),
            (Some(_), None) => {}
        }
        match (&mut self.proofs, &other.proofs) {
            (Some(mine), Some(theirs)) => mine.add(theirs),
            (mine @ None, theirs) => mine.clone_from(theirs),
            (Some(_), None) => {}
        }
        self.merge_work(other);
        self.changes.extend(other.changes.iter().cloned());
        for theirs in &other.warnings {
            if !self.warnings.contains(theirs) {
                self.warnings.push(theirs.clone());
            }
        }
        Ok(())
    }

    /// Refuses a record that is not a repetition of this one: another plan, seeds excepted, or
    /// another kind of machine.
    pub fn is_repeated_by(&self, other: &Record) -> Result<(), Incomparable> {
        self.same_time(other)?;
        let same = Plan { seed: self.plan.seed, ..other.plan.clone() } == self.plan;
        if !same {
            return Err(Incomparable::Plan);
        }
        self.same_kind_of_machine(other)
    }

    fn merge_series(&mut self, other: &Record) {
        for (nth, theirs) in other.series.iter().enumerate() {
            // A plan may contain a probe twice: the second series is merged into the second.
            let before = other.series[..nth].iter().filter(|s| s.same_kind(theirs)).count();
            match self.series.iter_mut().filter(|mine| mine.same_kind(theirs)).nth(before) {
                Some(mine) => mine.add(theirs).expect("a record's histograms are valid"),
                None => self.series.push(theirs.clone()),
            }
        }
    }

    fn merge_work(&mut self, other: &Record) {
        for (nth, theirs) in other.work.iter().enumerate() {
            let alike = |work: &&Work| work.load == theirs.load && work.unit == theirs.unit;
            let before = other.work[..nth].iter().filter(alike).count();
            let mine = self.work.iter_mut().filter(|mine| alike(&&**mine)).nth(before);
            match mine {
                Some(mine) => {
                    mine.done = mine.done.saturating_add(theirs.done);
                    mine.cpu_ns = mine.cpu_ns + theirs.cpu_ns;
                }
                None => self.work.push(theirs.clone()),
            }
        }
    }

    fn same_kind_of_machine(&self, other: &Record) -> Result<(), Incomparable> {
        let (a, b) = (&self.machine, &other.machine);
        let cpus = (a.cpus != b.cpus).then_some("their number of CPUs");
        match a.kernel_difference(b).or(cpus) {
            Some(what) => Err(Incomparable::Machine(what)),
            None => Ok(()),
        }
    }
}
