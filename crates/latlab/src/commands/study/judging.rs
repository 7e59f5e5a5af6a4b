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
    /// Whether the user asked for the end meanwhile.
    ended: bool,
}

impl<'a> Judge<'a> {
    pub(super) fn new(elsewhere: &'a Elsewhere, signals: &'a Signals) -> Judge<'a> {
        let (watch, bar, bases) = (live::cells(1), Bar::new(signals), BTreeMap::new());
        Judge { elsewhere, signals, watch, bar, bases, refused: 0, ended: false }
    }

    /// Whether the user asked for the end while it was found out what would be measured: nothing
    /// more is found out, and what can't be told is no reason to measure.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether records of a cell, which are of these plans, can be taken for what would be measured
    /// now. Fails where it can't be told here what that would be.
    pub(super) fn takes(&mut self, label: &str, plans: &[Plan], all: &[Record]) -> Result<bool> {
        let Some(plan) = plans.first() else { return Ok(true) };
        let basis = self.basis(label, plan)?;
        let takes = all.iter().all(|record| record.fingerprint.as_ref() == Some(&basis));
        self.refused += usize::from(!takes);
        Ok(takes)
    }

    /// The records of a cell that another computer has just measured, unless they are not what this
    /// one would have measured, as far as it can tell. Fails where the user does not let it tell.
    pub(super) fn accepted(
        &mut self,
        label: &str,
        plans: &[Plan],
        all: Vec<Record>,
    ) -> Result<Measured> {
        let other = "it was measured with another latlab, kernel or QEMU";
        match self.takes(label, plans, &all) {
            Ok(false) => Ok(Err(failed(label, other))),
            Err(failure) if self.ended => Err(failure),
            Ok(true) | Err(_) => Ok(Ok(all)),
        }
    }

    /// The record with its basis, which nobody has told of a machine that is as it is.
    pub(super) fn with_basis(&mut self, label: &str, plan: &Plan, record: Record) -> Record {
        let basis = record.fingerprint.clone().or_else(|| self.basis(label, plan).ok());
        Record { fingerprint: basis, ..record }
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
        errand.ended = self.ended;
        let found = target::find(&plan.target).and_then(|it| {
            errand.go_on(&plan.target)?;
            it.basis(plan, &mut errand)
        });
        self.ended = errand.ended;
        self.watch.note("");
        self.bar.end();
        self.bases.insert(label.to_owned(), found.clone());
        found
    }
}
