//! Measuring a study's cells: some at a time, and long ones in pieces that are kept one by one.

use super::judging::Judge;
use super::kept::{Kept, Measured, Place};
use crate::commands::elsewhere::Elsewhere;
use crate::failure::{Failure, Result, failed};
use crate::format::progress::Bar;
use crate::format::{self, live};
use crate::study::Source;
use crate::target;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_core::study::pieces::{self, LONGEST};
use latlab_sys::signal::Signals;

/// One repetition of a cell, or a piece of it, and what came of it, as soon as something has.
struct Piece<'a> {
    place: Place<'a>,
    plan: Plan,
    /// Whether it is part of something longer, and so to be kept by itself.
    cut: bool,
    record: Option<Result<Record>>,
}

/// Measures the cells with these labels and plans.
pub(super) fn measure(
    source: &Source,
    cells: &[(&str, &[Plan])],
    kept: Option<Kept<'_>>,
    elsewhere: &Elsewhere,
) -> Result<Vec<Measured>> {
    let mut pieces: Vec<Piece<'_>> = cells.iter().flat_map(|(label, of)| cut(label, of)).collect();
    if kept.is_none() && pieces.iter().any(|piece| piece.cut) {
        return Err(nowhere(source));
    }
    let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
    let mut judge = Judge::new(elsewhere, &signals);
    if let Some(kept) = kept.filter(|_| !elsewhere.is_fresh()) {
        let mut cut = pieces.iter_mut().filter(|piece| piece.cut);
        cut.try_for_each(|piece| piece.recall(kept, &mut judge))?;
        judge.say_what_was_refused();
    }
    carry_out(source, &mut pieces, kept, elsewhere, &signals, &mut judge)?;
    drop(judge);
    std::mem::forget(signals);
    let mut pieces = pieces.into_iter();
    Ok(cells.iter().map(|(label, plans)| joined(label, plans, &mut pieces)).collect())
}

impl Piece<'_> {
    /// Takes the record that is kept of it, if it would be measured alike now. Where nobody knows
    /// how that would be, measuring fails as well, and says why. Fails where the user wants the end.
    fn recall(&mut self, kept: Kept<'_>, judge: &mut Judge<'_>) -> Result<()> {
        let (label, plans) = (self.place.label, std::slice::from_ref(&self.plan));
        let Some(record) = kept.piece(self.place, &self.plan) else { return Ok(()) };
        match judge.takes(label, plans, std::slice::from_ref(&record)) {
            Err(failure) if judge.is_ended() => return Err(failure),
            takes => self.record = takes.unwrap_or(false).then_some(Ok(record)),
        }
        Ok(())
    }
}

/// The pieces of a cell.
fn cut<'a>(label: &'a str, plans: &[Plan]) -> Vec<Piece<'a>> {
    let of = |(repetition, whole): (usize, &Plan)| {
        let plans = pieces::cut(whole, LONGEST);
        let cut = plans.len() > 1;
        let piece = move |(piece, plan)| Piece {
            place: Place { label, repetition: repetition + 1, piece: piece + 1 },
            plan,
            cut,
            record: None,
        };
        plans.into_iter().enumerate().map(piece).collect::<Vec<_>>()
    };
    plans.iter().enumerate().flat_map(of).collect()
}

/// Has the target measure those of which nothing is known; pieces are kept as they come.
fn carry_out(
    source: &Source,
    pieces: &mut [Piece<'_>],
    kept: Option<Kept<'_>>,
    elsewhere: &Elsewhere,
    signals: &Signals,
    judge: &mut Judge<'_>,
) -> Result<()> {
    let mut missing: Vec<&mut Piece<'_>> =
        pieces.iter_mut().filter(|piece| piece.record.is_none()).collect();
    let Some(first) = missing.first() else { return Ok(()) };
    let target = target::find(&first.plan.target)?;
    let plans: Vec<Plan> = missing.iter().map(|piece| piece.plan.clone()).collect();
    let mut lost = false;
    let mut keep = |nth: usize, record: &Record| {
        let piece = &missing[nth];
        if let Some(kept) = kept.filter(|_| piece.cut && whole(record).is_ok()) {
            let record = judge.with_basis(piece.place.label, &piece.plan, record.clone());
            let kept = kept.keep_piece(piece.place, &record);
            if let (Err(failure), false) = (&kept, lost) {
                format::say(&format!(
                    "what is measured now would be lost with this latlab: {failure}"
                ));
            }
            lost |= kept.is_err();
        }
    };
    let mut watch = live::cells(plans.len());
    let mut bar = Bar::new(signals);
    let mut errand = elsewhere.errand(signals, watch.as_mut(), &mut bar);
    errand.limit = errand.limit.or(source.study.limit);
    errand.keep = Some(&mut keep);
    let outcomes = target.run(&plans, &mut errand);
    drop(bar);
    for (piece, outcome) in missing.iter_mut().zip(outcomes) {
        piece.record = Some(outcome.and_then(|outcome| {
            whole(&outcome.record)?;
            Ok(judge.with_basis(piece.place.label, &piece.plan, outcome.record))
        }));
    }
    Ok(())
}

/// The records of a cell's repetitions, each of its pieces, which are the next.
fn joined(label: &str, plans: &[Plan], pieces: &mut std::vec::IntoIter<Piece<'_>>) -> Measured {
    let of = |plan: &Plan| {
        let number = usize::try_from(pieces::number(plan.length, LONGEST)).unwrap_or(usize::MAX);
        // All of them are taken, so that the next cell's are the next.
        let records: Vec<_> =
            pieces.by_ref().take(number).filter_map(|piece| piece.record).collect();
        let missing = records.iter().filter(|record| record.is_err()).count();
        let records = records.into_iter().collect::<Result<Vec<_>>>().map_err(|failure| {
            let so_many = format!("{missing} of its {number} pieces are missing, one as");
            if number > 1 { failure.about(&so_many) } else { failure }
        })?;
        let joined = pieces::join(plan, records).map_err(|e| {
            failed(label, format!("its pieces don't fit: {e}; --fresh measures all of them again"))
        })?;
        joined.ok_or_else(|| failed(label, "nothing of it was measured"))
    };
    plans.iter().map(of).collect::<Vec<_>>().into_iter().collect()
}

/// Refuses what the user has ended early: that is no repetition.
pub(super) fn whole(record: &Record) -> Result<()> {
    match record.warnings.iter().find(|warning| warning.code == "interrupted") {
        Some(warning) => Err(Failure::Failed(warning.text.clone())),
        None => Ok(()),
    }
}

fn nowhere(source: &Source) -> Failure {
    failed(
        &source.name,
        format!(
            "what is longer than {LONGEST} is measured in pieces, which are kept: say where with \
             --out DIR"
        ),
    )
}
