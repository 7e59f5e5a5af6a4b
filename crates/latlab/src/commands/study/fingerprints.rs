//! Fingerprints of the cells: whether stored records are current.
//!
//! A record is current if its plan is the same, and its fingerprint is the one of this latlab and,
//! for a guest, of its kernel, profile and QEMU. The laboratory's cache uses the same fingerprint.

use super::folder::{CellPlans, CellResult};
use crate::commands::target_options::TargetOptions;
use crate::target::{self, Target};
use latlab_core::machine::Machine;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_format::progress::Bar;
use latlab_format::{self as format, live};
use latlab_measure::engine::Prepared;
use latlab_measure::session::Session;
use latlab_part::failure::{Result, failed};
use latlab_part::progress::Watch;
use latlab_sys::signal::Signals;
use std::collections::BTreeMap;

/// The fingerprint of each cell if it were measured now, determined on first use.
pub(super) struct Fingerprints<'a> {
    options: &'a TargetOptions,
    signals: &'a Signals,
    watch: Box<dyn Watch>,
    bar: Bar<'a>,
    /// By the cell's label.
    known: BTreeMap<String, Result<String>>,
    /// The kernel that each target runs, by its name.
    running: BTreeMap<String, Result<Option<Machine>>>,
    /// Records that were found outdated since the last report.
    outdated: usize,
    /// Whether the user has asked for the end meanwhile.
    interrupted: bool,
}

impl<'a> Fingerprints<'a> {
    pub(super) fn new(options: &'a TargetOptions, signals: &'a Signals) -> Fingerprints<'a> {
        Fingerprints {
            options,
            signals,
            watch: live::cells(1),
            bar: Bar::new(signals),
            known: BTreeMap::new(),
            running: BTreeMap::new(),
            outdated: 0,
            interrupted: false,
        }
    }

    /// Whether the user asked for the end while a fingerprint was determined. No further one is
    /// determined then, and an unknown fingerprint is no reason to measure.
    pub(super) fn are_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether the records, which are of the cell's plans, are what would be measured now. Fails
    /// where the fingerprint can't be determined on this computer.
    pub(super) fn match_records(
        &mut self,
        cell: CellPlans<'_>,
        records: &[Record],
    ) -> Result<bool> {
        let Some(plan) = cell.plans.first() else { return Ok(true) };
        let current = self.current(cell.label, plan)?;
        let all_match = records.iter().all(|record| record.fingerprint.as_ref() == Some(&current));
        self.outdated += usize::from(!all_match);
        Ok(all_match)
    }

    /// Whether a record of this plan is of the kernel that the target runs now. The record's
    /// fingerprint is the present one. Fails if that can't be determined.
    pub(super) fn match_kernel(&mut self, plan: &Plan, record: &Record) -> Result<bool> {
        let running = match self.running.get(&plan.target) {
            Some(known) => known.clone(),
            None => self.ask(&plan.target, |target, session| target.running(&plan.target, session)),
        };
        self.running.insert(plan.target.clone(), running.clone());
        let differs = |machine: Machine| machine.kernel_difference(&record.machine).is_some();
        let matches = !running?.is_some_and(differs);
        self.outdated += usize::from(!matches);
        Ok(matches)
    }

    /// Accepts the records of a cell that another computer has just measured, unless their
    /// fingerprint differs from the one determined here. Fails where the user has asked for the
    /// end.
    pub(super) fn accept(
        &mut self,
        cell: CellPlans<'_>,
        records: Vec<Record>,
    ) -> Result<CellResult> {
        match self.match_records(cell, &records) {
            Ok(false) => {
                let why = "it was measured with another latlab, kernel or QEMU";
                Ok(Err(failed(cell.label, why)))
            }
            Err(failure) if self.interrupted => Err(failure),
            Ok(true) | Err(_) => Ok(Ok(records)),
        }
    }

    /// The record with its fingerprint. A target other than a guest does not report one.
    pub(super) fn add_to(&mut self, label: &str, plan: &Plan, record: Record) -> Record {
        let fingerprint = record.fingerprint.clone().or_else(|| self.current(label, plan).ok());
        Record { fingerprint, ..record }
    }

    /// Says how many records were found outdated since the last report.
    pub(super) fn report_outdated(&mut self) {
        let outdated = std::mem::take(&mut self.outdated);
        if outdated > 0 {
            format::say(&format!(
                "{outdated} of the records were measured with another latlab, kernel or QEMU than \
                 the present ones: measured again"
            ));
        }
    }

    /// The fingerprint of a cell. It is the same for all repetitions and pieces, which differ only
    /// in seed and length.
    fn current(&mut self, label: &str, plan: &Plan) -> Result<String> {
        if let Some(known) = self.known.get(label) {
            return known.clone();
        }
        let fingerprint = self
            .ask(&plan.target, |target, session| target.fingerprint(&Prepared::of(plan)?, session));
        self.known.insert(label.to_owned(), fingerprint.clone());
        fingerprint
    }

    /// Asks a target something, unless the user has asked for the end.
    fn ask<T>(
        &mut self,
        name: &str,
        question: impl FnOnce(&dyn Target, &mut Session<'_>) -> Result<T>,
    ) -> Result<T> {
        let (watch, bar) = (self.watch.as_mut(), &mut self.bar);
        let mut session = self.options.session(self.signals, watch, bar);
        session.ended = self.interrupted;
        let answer = target::find(name).and_then(|target| {
            session.check_not_ended(name)?;
            question(target, &mut session)
        });
        self.interrupted = session.ended;
        self.watch.note("");
        self.bar.end();
        answer
    }
}
