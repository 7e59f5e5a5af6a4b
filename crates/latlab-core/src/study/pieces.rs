//! Long measurements in pieces, so that one that is ended loses the piece it is in and no more.

use crate::plan::{Length, Plan};
use crate::record::{Incomparable, Record};
use crate::time::Nanos;

/// No piece is longer. The laboratory takes some minutes on the wall for one of guest time.
pub const LONGEST: Nanos = Nanos::from_secs(300);

/// No cell is longer: a week.
const MOST: Nanos = Nanos::from_secs(7 * 24 * 3_600);

/// Refuses, in words, what is longer than [`MOST`].
pub fn not_too_long(time: Nanos) -> Result<(), String> {
    if time <= MOST { Ok(()) } else { Err(format!("no cell is measured for more than {MOST}")) }
}

/// How many pieces of at most `longest` a length is measured in. A count is never cut: how long it
/// takes is not known.
pub fn number(length: Length, longest: Nanos) -> u64 {
    match length {
        Length::For(time) => time.0.div_ceil(longest.0.max(1)).max(1),
        Length::Count(_) => 1,
    }
}

/// The plans of the pieces, in their order: as long as each other to a nanosecond, and each with
/// the seed after that of the one before. A plan that is short enough is its own only piece.
pub fn cut(whole: &Plan, longest: Nanos) -> Vec<Plan> {
    let number = number(whole.length, longest);
    let Length::For(time) = whole.length else { return vec![whole.clone()] };
    let end = |nth: u64| {
        let end = u128::from(time.0) * u128::from(nth) / u128::from(number);
        Nanos(u64::try_from(end).expect("a part is not longer than the whole"))
    };
    let piece = |nth| Plan {
        length: Length::For(end(nth + 1) - end(nth)),
        seed: whole.seed.wrapping_add(nth),
        ..whole.clone()
    };
    (0..number).map(piece).collect()
}

/// The record of the whole, from those of its pieces: all samples together, over one another in
/// time as those of repetitions are. None of no piece; fails where the pieces were not measured on
/// the same kind of machine.
pub fn join(whole: &Plan, pieces: Vec<Record>) -> Result<Option<Record>, Incomparable> {
    let as_whole = pieces.into_iter().map(|piece| {
        let plan = Plan { cpus: piece.plan.cpus.clone(), ..whole.clone() };
        Record { plan, ..piece }
    });
    let mut joined: Option<Record> = None;
    for piece in as_whole {
        match &mut joined {
            Some(joined) => joined.merge(&piece)?,
            None => joined = Some(piece),
        }
    }
    Ok(joined)
}
