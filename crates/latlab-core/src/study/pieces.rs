//! Long measurements in pieces: an interrupted measurement loses only the current piece.

use crate::plan::{Length, Plan};
use crate::record::{Incomparable, Record};
use crate::time::Nanos;

/// Maximum length of a piece. The laboratory takes minutes of wall-clock time for one of guest
/// time.
pub const LONGEST: Nanos = Nanos::from_secs(300);

/// Maximum length of a cell: a week.
const MOST: Nanos = Nanos::from_secs(7 * 24 * 3_600);

/// Refuses lengths above [`MOST`], with the reason.
pub fn check_length(time: Nanos) -> Result<(), String> {
    if time <= MOST { Ok(()) } else { Err(format!("a cell is measured for at most {MOST}")) }
}

/// Returns the number of pieces of at most `longest`. A count is one piece, since its duration is
/// unknown.
pub fn number(length: Length, longest: Nanos) -> u64 {
    match length {
        Length::For(time) => time.0.div_ceil(longest.0.max(1)).max(1),
        Length::Count(_) => 1,
    }
}

/// Returns the plans of the pieces in order. Their lengths differ by at most a nanosecond, and each
/// has the next seed. A plan that is short enough stays as it is.
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

/// Merges the records of all pieces, in order, into the record of the whole. Their time lines
/// follow each other. None without pieces; fails if the machines or fingerprints differ.
pub fn join(whole: &Plan, pieces: Vec<Record>) -> Result<Option<Record>, Incomparable> {
    let mut start = Nanos(0);
    let as_whole = pieces.into_iter().map(|mut piece| {
        for series in &mut piece.series {
            series.timeline = series.timeline.delayed(start);
        }
        for sample in &mut piece.worst {
            sample.at = sample.at + start;
        }
        if let Length::For(time) = piece.plan.length {
            start = start + time;
        }
        let plan = Plan { cpus: piece.plan.cpus.clone(), ..whole.clone() };
        Record { plan, ..piece }
    });
    let mut joined: Option<Record> = None;
    for piece in as_whole {
        match &mut joined {
            Some(joined) if joined.fingerprint != piece.fingerprint => {
                return Err(Incomparable::Fingerprint);
            }
            Some(joined) => joined.merge(&piece)?,
            None => joined = Some(piece),
        }
    }
    Ok(joined)
}
