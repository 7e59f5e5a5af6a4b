//! The runs of both sides, and how they were taken: that decides what may be said about chance.

use crate::machine::TimeDomain;
use crate::record::{Incomparable, Record};
use crate::time::Nanos;
use serde::Serialize;
use std::borrow::Borrow;

/// Two of this many arrangements of the runs are 5 %: with fewer, nothing can be told from chance.
const FEWEST_ARRANGEMENTS: u128 = 40;

/// How the runs of two sides are held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// In the time of instructions, of the same seeds, which give no side a run that differs from its
    /// others: each difference is what it is.
    Exact,
    /// Each run with the one that was taken next to it.
    Paired,
    /// All runs of one side with all of the other.
    Unpaired,
    /// There are too few runs to tell a difference from chance.
    None,
}

/// In which order the runs of two sides were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// In turns: what the machine does meanwhile, it does to both.
    InTurns,
    /// In no order that would make pairs.
    Mixed,
    /// All of one side before all of the other.
    OneAfterTheOther,
    /// In the laboratory, where a run does not know of those before it and its seed is all chance.
    BySeed,
}

/// How two sets of runs are compared, and on which ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Design {
    /// How many runs each side has.
    pub runs: (usize, usize),
    /// How they are held against each other.
    pub method: Method,
    /// In which order they were taken.
    pub order: Order,
    /// How many quantiles were judged together.
    pub judged: usize,
}

/// The runs in the order in which they were taken, each once, however often it is given; in the
/// laboratory by their seeds, of which one that was run again, and gave the same, is there once: it
/// tells nothing new.
pub fn distinct<R: Borrow<Record>>(mut runs: Vec<R>) -> Vec<R> {
    let counted = |run: &Record| run.machine.time_domain == TimeDomain::Instructions;
    // The laboratory's clock begins anew with each run.
    let start = |run: &Record| if counted(run) { Nanos(0) } else { run.started };
    runs.sort_by_key(|run| (start(run.borrow()), run.borrow().plan.seed));
    let same = |one: &Record, other: &Record| {
        one.plan.seed == other.plan.seed
            && one.series == other.series
            && one.scans == other.scans
            && one.figures == other.figures
    };
    let mut kept: Vec<R> = Vec::new();
    for run in runs {
        let one: &Record = run.borrow();
        let again = |known: &Record| if counted(one) { same(known, one) } else { known == one };
        if !kept.iter().any(|known| again(known.borrow())) {
            kept.push(run);
        }
    }
    kept
}

/// The runs of one side in the order in which they were taken, and all of them together.
pub(super) struct Side<'a> {
    pub(super) runs: Vec<&'a Record>,
    pub(super) whole: Record,
}

impl<'a> Side<'a> {
    /// None without a run.
    pub(super) fn of(records: &'a [Record]) -> Result<Option<Side<'a>>, Incomparable> {
        let runs = distinct(records.iter().collect());
        let Some((first, others)) = runs.split_first() else {
            return Ok(None);
        };
        let mut whole = (*first).clone();
        for other in others {
            first.is_repeated_by(other)?;
            let mut other = (*other).clone();
            other.plan.seed = whole.plan.seed;
            whole.merge(&other)?;
        }
        Ok(Some(Side { runs, whole }))
    }

    /// The seeds of its runs.
    fn seeds(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().map(|run| run.plan.seed)
    }

    /// Whether chance had a part in it.
    fn varies(&self) -> bool {
        self.runs.windows(2).any(|two| two[0].series != two[1].series)
    }
}

impl Design {
    pub(super) fn of(a: &Side<'_>, b: &Side<'_>) -> Design {
        let runs = (a.runs.len(), b.runs.len());
        let order = order(a, b);
        let exact = a.seeds().eq(b.seeds()) && !a.varies() && !b.varies();
        let method = if order == Order::BySeed && exact {
            Method::Exact
        } else if order == Order::InTurns && pairs_suffice(runs.0) {
            Method::Paired
        } else if order != Order::InTurns && sets_suffice(runs) {
            Method::Unpaired
        } else {
            Method::None
        };
        Design { runs, method, order, judged: 0 }
    }

    /// What a reader has to know of it before the figures.
    pub fn words(&self) -> String {
        let judged = match self.judged {
            0 | 1 => String::new(),
            n => format!(
                "; of 100 comparisons without a difference, 5 at most find one anywhere in {n} verdicts"
            ),
        };
        match self.method {
            Method::Exact => "The time is that of instructions, the same in each repetition: the \
                              differences are exact, and chance has no part in them. What another \
                              seed would give, runs with six seeds and more tell."
                .to_owned(),
            Method::Paired => format!(
                "{} runs of each, taken in turns: B/A is the median over pairs, with the interval \
                 that 95 of 100 resamplings of runs stay in{judged}.",
                self.runs.0
            ),
            Method::Unpaired => format!(
                "{} runs and {} runs, {}: B/A is of the medians over runs, with the interval that \
                 95 of 100 resamplings of runs stay in{judged}.{}",
                self.runs.0,
                self.runs.1,
                if self.order == Order::BySeed { "each of another seed" } else { "not in turns" },
                if self.order == Order::OneAfterTheOther {
                    " All runs of one were taken before all of the other: whatever has changed on \
                     the machine meanwhile looks like a difference. Measure in turns."
                } else {
                    ""
                }
            ),
            Method::None => format!("{}.", self.too_few()),
        }
    }

    /// Why nothing can be told from chance.
    pub(super) fn too_few(&self) -> String {
        let how = if self.order == Order::BySeed { "each of another seed" } else { "in turns" };
        let runs = match self.runs {
            (1, 1) => "One run each says nothing about chance".to_owned(),
            (a, b) => format!("{a} and {b} runs are too few to tell a difference from chance"),
        };
        format!("{runs}: measure six of each or more, {how}")
    }
}

/// Each pair of runs can be exchanged or not.
fn pairs_suffice(pairs: usize) -> bool {
    u32::try_from(pairs).is_ok_and(|pairs| pairs > FEWEST_ARRANGEMENTS.ilog2())
}

/// Any runs can be those of one side.
fn sets_suffice((a, b): (usize, usize)) -> bool {
    let mut ways: u128 = 1;
    for n in 1..=a.min(b) as u128 {
        ways = ways * (a.max(b) as u128 + n) / n;
        if ways >= FEWEST_ARRANGEMENTS {
            return true;
        }
    }
    false
}

/// In turns are runs of which no pair begins before the one before it has: A B, B A, A B.
fn order(a: &Side<'_>, b: &Side<'_>) -> Order {
    if a.whole.machine.time_domain == TimeDomain::Instructions {
        return Order::BySeed;
    }
    let begun = |side: &Side<'_>| side.runs.iter().map(|run| run.started).collect::<Vec<_>>();
    let (a, b) = (begun(a), begun(b));
    if a.len() == b.len() {
        let pairs: Vec<_> = a.iter().zip(&b).map(|(a, b)| (*a.min(b), *a.max(b))).collect();
        if pairs.windows(2).all(|two| two[0].1 <= two[1].0) {
            return Order::InTurns;
        }
    }
    let apart = |first: &[_], second: &[_]| first.last() <= second.first();
    if apart(&a, &b) || apart(&b, &a) { Order::OneAfterTheOther } else { Order::Mixed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_pairs_or_four_and_four_runs_are_the_fewest() {
        assert!(!pairs_suffice(5) && pairs_suffice(6));
        assert!(!sets_suffice((3, 3)) && sets_suffice((4, 4)) && sets_suffice((3, 10)));
        assert!(!sets_suffice((1, 38)) && sets_suffice((1, 39)));
        assert!(sets_suffice((100_000, 100_000)));
    }
}
