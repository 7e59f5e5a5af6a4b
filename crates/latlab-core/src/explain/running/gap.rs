//! The gaps of a busy loop by its own clock, and what was recorded within each.

use super::Account;
use super::source::Source;
use crate::explain::charge::{Charge, Explanation};
use crate::time::Nanos;
use std::collections::VecDeque;

/// Data on a busy loop besides its account.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// What took the CPU, in order of time.
    pieces: VecDeque<Piece>,
    /// Time that was stolen while it ran, by when.
    steals: VecDeque<Steal>,
    /// Number of gaps so far.
    pub(super) gaps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    source: Source,
    from: Nanos,
    to: Nanos,
}

/// Stolen time, at an unknown moment between two events.
#[derive(Clone, Copy, Debug)]
struct Steal {
    from: Nanos,
    to: Nanos,
    left: Nanos,
}

/// Most pieces that wait for the gap around them; the oldest are dropped first.
const PIECES: usize = 1 << 16;

impl Own {
    pub(super) fn piece(&mut self, source: Source, (from, to): (Nanos, Nanos)) {
        self.pieces.push_back(Piece { source, from, to });
        if self.pieces.len() > PIECES {
            self.pieces.pop_front();
        }
    }

    pub(super) fn steals(&mut self, (from, to): (Nanos, Nanos), left: Nanos) {
        if left == Nanos(0) {
            return;
        }
        self.steals.push_back(Steal { from, to, left });
        if self.steals.len() > PIECES {
            self.steals.pop_front();
        }
    }

    /// Takes the pieces within a gap, cut to it.
    fn pieces_in(&mut self, from: Nanos, to: Nanos) -> Vec<Piece> {
        while self.pieces.front().is_some_and(|piece| piece.to <= from) {
            self.pieces.pop_front();
        }
        let within = self.pieces.iter().take_while(|piece| piece.from < to);
        within
            .map(|piece| Piece { from: piece.from.max(from), to: piece.to.min(to), ..*piece })
            .collect()
    }

    /// Takes as much of the stolen time that may be of a gap as there is, up to `most`.
    fn stolen_in(&mut self, (from, to): (Nanos, Nanos), most: Nanos) -> Nanos {
        while self.steals.front().is_some_and(|steal| steal.to <= from) {
            self.steals.pop_front();
        }
        let mut sum = Nanos(0);
        for steal in self.steals.iter_mut().take_while(|steal| steal.from < to) {
            let part = steal.left.min(most - sum);
            (steal.left, sum) = (steal.left - part, sum + part);
        }
        sum
    }
}

impl Account {
    /// Explains a gap of a busy loop that ended at a moment, up to which events were added. Where
    /// something was recorded in it, the rest of it is the ways into the kernel and out of it, up to
    /// `most_around` for each time the kernel was entered: more was not recorded. Where nothing was
    /// recorded, it is unexplained.
    pub fn gap(&mut self, pid: u32, at: Nanos, length: Nanos, most_around: Nanos) -> Explanation {
        let unexplained = Explanation { charges: Vec::new(), unexplained: length };
        let Some(thread) = self.threads.get_mut(&pid) else { return unexplained };
        let Some(own) = &mut thread.own else { return unexplained };
        own.gaps += 1;
        let from = at - length;
        let pieces = own.pieces_in(from, at);
        let mut free = free(&pieces, from, at);
        let rest = sum(&free);
        let stolen = own.stolen_in((from, at), rest);
        let entries = free.len().saturating_sub(1).max(1) as u64;
        let around = rest - stolen;
        let is_around = !pieces.is_empty() && around.0 <= most_around.0.saturating_mul(entries);
        let source = if is_around { Source::Dispatch } else { Source::Nothing };
        let cpu = thread.cpu;
        for (source, time) in [(Source::Host, stolen), (source, around)] {
            let time = time.min(thread.ran);
            if time > Nanos(0) {
                thread.ran = thread.ran - time;
                thread.take_once(cpu, source, time);
            }
        }
        let host = cut(&mut free, stolen).into_iter().map(|span| (Source::Host, span));
        let dispatch = free.into_iter().filter(|_| is_around).map(|span| (Source::Dispatch, span));
        let recorded = pieces.iter().map(|piece| (piece.source, (piece.from, piece.to)));
        let charges = charges(recorded.chain(host).chain(dispatch).collect());
        let explained = charges.iter().fold(Nanos(0), |sum, charge| sum + charge.length());
        Explanation { charges, unexplained: length - explained }
    }
}

/// The parts of a gap outside of all pieces.
fn free(pieces: &[Piece], from: Nanos, to: Nanos) -> Vec<(Nanos, Nanos)> {
    let begins = std::iter::once(from).chain(pieces.iter().map(|piece| piece.to));
    let ends = pieces.iter().map(|piece| piece.from).chain([to]);
    begins.zip(ends).filter(|(from, to)| from < to).collect()
}

fn sum(spans: &[(Nanos, Nanos)]) -> Nanos {
    spans.iter().fold(Nanos(0), |sum, (from, to)| sum + (*to - *from))
}

/// Cuts as much time off spans, the longest first.
fn cut(spans: &mut Vec<(Nanos, Nanos)>, time: Nanos) -> Vec<(Nanos, Nanos)> {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(spans[*index].1 - spans[*index].0));
    let (mut left, mut parts) = (time, Vec::new());
    for index in order {
        let (from, to) = spans[index];
        let end = to.min(from + left);
        (spans[index].0, left) = (end, left - (end - from));
        parts.push((from, end));
    }
    spans.retain(|(from, to)| from < to);
    parts.retain(|(from, to)| from < to);
    parts
}

/// Charges in order of time. Adjacent charges of the same source are merged; empty ones are left
/// out.
fn charges(mut parts: Vec<(Source, (Nanos, Nanos))>) -> Vec<Charge> {
    parts.retain(|(_, (from, to))| from < to);
    parts.sort_by_key(|(_, (from, _))| *from);
    let mut charges: Vec<Charge> = Vec::new();
    for (source, (from, to)) in parts {
        let (cause, culprit) = (source.cause(), source.culprit());
        match charges.last_mut() {
            Some(last) if last.to == from && (last.cause, &last.culprit) == (cause, &culprit) => {
                last.to = to;
            }
            _ => charges.push(Charge { cause, from, to, culprit }),
        }
    }
    charges
}
