//! Measuring the cells of a study: several at a time, long ones in pieces that are stored one by
//! one.

use super::fingerprints::Fingerprints;
use super::folder::{self, CellPlans, CellResult, Folder, PieceId};
use crate::commands::block_signals;
use crate::commands::target_options::TargetOptions;
use crate::study::StudyFile;
use crate::target;
use latlab_core::plan::Plan;
use latlab_core::record::Record;
use latlab_core::study::pieces::{self, LONGEST};
use latlab_format::progress::Bar;
use latlab_format::{self as format, live};
use latlab_measure::engine::{Outcome, Prepared};
use latlab_measure::session::Limit;
use latlab_part::failure::{Failure, Result, failed};
use latlab_sys::signal::Signals;
use std::slice;

/// A repetition of a cell, or a piece of a long one.
struct Piece<'a> {
    id: PieceId<'a>,
    plan: Plan,
    /// Whether it is shorter than its repetition, and therefore stored by itself.
    partial: bool,
    /// The outcome, once there is one.
    record: Option<Result<Record>>,
}

/// Measures these cells. Pieces are stored in the folder, those that it has are not measured again.
pub(super) fn measure(
    file: &StudyFile,
    cells: &[CellPlans<'_>],
    folder: Option<Folder<'_>>,
    options: &TargetOptions,
) -> Result<Vec<CellResult>> {
    let mut pieces: Vec<Piece<'_>> = cells.iter().flat_map(|cell| cut(*cell)).collect();
    if folder.is_none() && pieces.iter().any(|piece| piece.partial) {
        return Err(needs_folder(file));
    }
    let signals = block_signals()?;
    let mut fingerprints = Fingerprints::new(options, &signals);
    if let Some(folder) = folder.filter(|_| !options.is_fresh()) {
        let mut partial = pieces.iter_mut().filter(|piece| piece.partial);
        partial.try_for_each(|piece| piece.load(folder, &mut fingerprints))?;
        fingerprints.report_outdated();
    }
    measure_missing(file, &mut pieces, folder, options, &signals, &mut fingerprints)?;
    drop(fingerprints);
    let mut pieces = pieces.into_iter();
    Ok(cells.iter().map(|cell| join(*cell, &mut pieces)).collect())
}

impl Piece<'_> {
    /// Takes the stored record, if it is current. A fingerprint that can't be determined is not
    /// reported here: measuring fails for the same reason. Fails where the user asks for the end.
    fn load(&mut self, folder: Folder<'_>, fingerprints: &mut Fingerprints<'_>) -> Result<()> {
        let Some(record) = folder.load_piece(self.id, &self.plan) else { return Ok(()) };
        let cell = CellPlans { label: self.id.label, plans: slice::from_ref(&self.plan) };
        let current = fingerprints.match_records(cell, slice::from_ref(&record));
        let current =
            current.and_then(|same| Ok(same && fingerprints.match_kernel(&self.plan, &record)?));
        match current {
            Err(failure) if fingerprints.are_interrupted() => return Err(failure),
            matches => self.record = matches.unwrap_or(false).then_some(Ok(record)),
        }
        Ok(())
    }
}

/// Cuts the repetitions of a cell into pieces.
fn cut(cell: CellPlans<'_>) -> Vec<Piece<'_>> {
    let label = cell.label;
    let pieces_of = |(repetition, whole): (usize, &Plan)| {
        let plans = pieces::cut(whole, LONGEST);
        let partial = plans.len() > 1;
        let piece = move |(piece, plan)| Piece {
            id: PieceId { label, repetition: repetition + 1, piece: piece + 1 },
            plan,
            partial,
            record: None,
        };
        plans.into_iter().enumerate().map(piece).collect::<Vec<_>>()
    };
    cell.plans.iter().enumerate().flat_map(pieces_of).collect()
}

/// Has the target measure the pieces without a record. Partial ones are stored as soon as they are
/// there.
fn measure_missing(
    file: &StudyFile,
    pieces: &mut [Piece<'_>],
    folder: Option<Folder<'_>>,
    options: &TargetOptions,
    signals: &Signals,
    fingerprints: &mut Fingerprints<'_>,
) -> Result<()> {
    let mut missing: Vec<&mut Piece<'_>> =
        pieces.iter_mut().filter(|piece| piece.record.is_none()).collect();
    // Repetitions of the cells take turns, so that a machine in another state changes all alike.
    missing.sort_by_key(|piece| piece.id.repetition);
    let Some(first) = missing.first() else { return Ok(()) };
    let target = target::find(&first.plan.target)?;
    let plans: Vec<Prepared> =
        missing.iter().map(|piece| Prepared::of(&piece.plan)).collect::<Result<_>>()?;
    let mut store_failed = false;
    let mut store = |nth: usize, outcome: &Outcome| {
        let piece = &missing[nth];
        if let Some(folder) = folder.filter(|_| piece.partial && outcome.check_whole().is_ok()) {
            let record = outcome.record.clone();
            let record = fingerprints.add_to(piece.id.label, &piece.plan, record);
            let stored = folder.store_piece(piece.id, &record);
            if let (Err(failure), false) = (&stored, store_failed) {
                format::say(&format!(
                    "pieces can't be stored, and are lost if latlab ends early: {failure}"
                ));
            }
            store_failed |= stored.is_err();
        }
    };
    let mut watch = live::cells(plans.len());
    let mut bar = Bar::new(signals);
    let mut session = options.session(signals, watch.as_mut(), &mut bar);
    session.limit = session.limit.or(file.study.limit.map(Limit::WallClock));
    session.keep = Some(&mut store);
    let outcomes = target.run(&plans, &mut session);
    drop(bar);
    for (piece, outcome) in missing.iter_mut().zip(outcomes) {
        let record = outcome.and_then(Outcome::whole);
        piece.record =
            Some(record.map(|one| fingerprints.add_to(piece.id.label, &piece.plan, one)));
    }
    Ok(())
}

/// Joins the pieces of a cell, which are the next in `pieces`, to one record for each repetition.
fn join(cell: CellPlans<'_>, pieces: &mut std::vec::IntoIter<Piece<'_>>) -> CellResult {
    let label = cell.label;
    let repetition = |plan: &Plan| {
        let number = usize::try_from(pieces::number(plan.length, LONGEST)).unwrap_or(usize::MAX);
        // All of them are consumed, so that the next cell finds its own.
        let records: Vec<_> =
            pieces.by_ref().take(number).filter_map(|piece| piece.record).collect();
        let missing = records.iter().filter(|record| record.is_err()).count();
        let records = records.into_iter().collect::<Result<Vec<_>>>().map_err(|failure| {
            let how_many = format!("{missing} of its {number} pieces are missing, the first");
            if number > 1 { failure.about(&how_many) } else { failure }
        })?;
        let joined = pieces::join(plan, records).map_err(|e| {
            failed(label, format!("its pieces don't match: {e}; --fresh measures them all again"))
        })?;
        joined.ok_or_else(|| failed(label, "it was not measured"))
    };
    // Collected twice: the repetitions after one that failed have to consume their pieces too.
    let records: Vec<_> = cell.plans.iter().map(repetition).collect();
    folder::check_alike(label, records.into_iter().collect::<Result<_>>()?)
}

fn needs_folder(file: &StudyFile) -> Failure {
    let why = format!(
        "cells longer than {LONGEST} are measured in pieces, which have to be stored: name a \
         folder with --out DIR"
    );
    failed(&file.name, why)
}
