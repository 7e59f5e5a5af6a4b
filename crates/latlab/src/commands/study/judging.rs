//! Judging whether what is kept is what would be measured now: of the same plan, by the same latlab,
//! and of a guest on the same kernel, profile and QEMU. The laboratory's memory judges by the same.

use super::kept::Measured;
use crate::commands::elsewhere::Elsewhere;
use crate::failure::{Result, failed};
use crate::format::progress::Bar;
use crate::format::{self, live};
use crate::rig::Watch;
use crate::target;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_sys::signal::Signals;
use std::collections::BTreeMap;

/// Knows on which basis each cell would be measured now, as soon as somebody asks.
pub(super) struct Judge<'a> {
    elsewhere: &'a Elsewhere,
    signals: &'a Signals,
    watch: Box<dyn Watch>,
    bar: Bar<'a>,
    bases: BTreeMap<String, Result<String>>,
    refused: usize,
}

impl<'a> Judge<'a> {
    pub(super) fn new(elsewhere: &'a Elsewhere, signals: &'a Signals) -> Judge<'a> {
        let (watch, bar, bases) = (live::cells(1), Bar::new(signals), BTreeMap::new());
        Judge { elsewhere, signals, watch, bar, bases, refused: 0 }
    }

    /// Whether records of a cell, which are of these plans, can be taken for what would be measured
    /// now. Fails where it can't be told here what that would be.
    pub(super) fn takes(&mut self, label: &str, plans: &[Plan], all: &[Record]) -> Result<bool> {
        let Some(plan) = plans.first() else { return Ok(true) };
        let basis = self.basis(label, plan)?;
        let takes = all.iter().all(|record| record.basis.as_ref() == Some(&basis));
        self.refused += usize::from(!takes);
        Ok(takes)
    }

    /// The records of a cell that another computer has just measured, unless they are not what this
    /// one would have measured, as far as it can tell.
    pub(super) fn accepted(&mut self, label: &str, plans: &[Plan], all: Vec<Record>) -> Measured {
        match self.takes(label, plans, &all) {
            Ok(false) => Err(failed(label, "it was measured with another latlab, kernel or QEMU")),
            Ok(true) | Err(_) => Ok(all),
        }
    }

    /// The record with its basis, which nobody has told of a machine that is as it is.
    pub(super) fn with_basis(&mut self, label: &str, plan: &Plan, record: Record) -> Record {
        let basis = record.basis.clone().or_else(|| self.basis(label, plan).ok());
        Record { basis, ..record }
    }

    /// Says how much was refused.
    pub(super) fn say_what_was_refused(&mut self) {
        let refused = std::mem::take(&mut self.refused);
        if refused > 0 {
            let with = "with another latlab, kernel or QEMU than are here now";
            format::say(&format!("{refused} of the records were measured {with}: measured again"));
        }
    }

    /// The same for all repetitions and pieces: they differ in seed and length.
    fn basis(&mut self, label: &str, plan: &Plan) -> Result<String> {
        if let Some(known) = self.bases.get(label) {
            return known.clone();
        }
        let (watch, bar) = (self.watch.as_mut(), &mut self.bar);
        let mut errand = self.elsewhere.errand(self.signals, watch, bar);
        let found = target::find(&plan.target).and_then(|it| it.basis(plan, &mut errand));
        self.watch.note("");
        self.bar.end();
        self.bases.insert(label.to_owned(), found.clone());
        found
    }
}
