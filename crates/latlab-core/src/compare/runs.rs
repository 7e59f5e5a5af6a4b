//! The runs of both sides, and their order, which decides how they are compared.

use super::difference::{Difference, differences};
use super::turns::Look;
use super::verdict::LEVEL;
use crate::machine::TimeDomain;
use crate::record::{Incomparable, Record, Warning};
use crate::time::Nanos;
use serde::Serialize;
use std::borrow::Borrow;

/// Minimum number of arrangements of the runs: two of this many are 5 %.
const FEWEST_ARRANGEMENTS: u128 = 40;

/// Minimum number of runs of a side.
const FEWEST_OF_A_SIDE: usize = 3;

/// How the runs of two sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Exactly repeatable times (counted instructions) of the same seeds: every difference is real.
    Exact,
    /// Each run with the other side's run that was taken next to it.
    Paired,
    /// All runs of one side with all of the other.
    Unpaired,
    /// Not at all: too few runs to tell a difference from chance.
    None,
}

/// Order in which the runs of two sides were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Interleaved: a change of the machine affects both sides.
    InTurns,
    /// Neither interleaved nor one side after the other.
    Mixed,
    /// All of one side before all of the other.
    OneAfterTheOther,
    /// In the laboratory: runs are independent of one another, and differ by their seed only.
    BySeed,
}

/// The design of a comparison: its runs and the method that they allow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Design {
    /// Number of runs of each side.
    pub runs: (usize, usize),
    /// How the runs are compared.
    pub method: Method,
    /// Order in which they were taken.
    pub order: Order,
    /// Whether the same side came first in each pair of runs that were taken in turns.
    pub same_first: bool,
    /// Number of quantiles judged together.
    pub judged: usize,
    /// Significance level.
    pub level: f64,
}

/// Returns the runs in the order in which they were taken, without duplicates. Laboratory runs are
/// ordered by seed, and a repetition with the same seed and the same result is a duplicate.
pub fn distinct<R: Borrow<Record>>(mut runs: Vec<R>) -> Vec<R> {
    // The laboratory's clock restarts with each run.
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

/// Whether time is a count of instructions.
fn counted(run: &Record) -> bool {
    run.machine.time_domain == TimeDomain::Instructions
}

/// The runs of one side in order, and all of them merged.
pub(super) struct Side<'a> {
    pub(super) runs: Vec<&'a Record>,
    pub(super) whole: Record,
}

impl<'a> Side<'a> {
    /// Returns none if there is no run.
    pub(super) fn of(runs: Vec<&'a Record>) -> Result<Option<Side<'a>>, Incomparable> {
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

    /// Number of runs with this warning.
    pub(super) fn count(&self, warning: fn(&Record) -> Option<&Warning>) -> usize {
        self.runs.iter().filter(|run| warning(run).is_some()).count()
    }

    /// The fields in which the machines of the runs differ, each once: its value in the first run,
    /// and in the first run that has another.
    pub(super) fn machine_differences(&self) -> Vec<Difference> {
        let mut found: Vec<Difference> = Vec::new();
        for run in &self.runs {
            let mut new = differences(&self.runs[0].machine, &run.machine);
            new.retain(|one| !found.iter().any(|known| known.field == one.field));
            found.extend(new);
        }
        found
    }

    /// Seeds of the runs.
    fn seeds(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().map(|run| run.plan.seed)
    }

    /// Whether the runs differ.
    fn varies(&self) -> bool {
        self.runs.windows(2).any(|two| two[0].series != two[1].series)
    }
}

impl Design {
    /// The design of distinct runs, whose order follows from their start times.
    pub(super) fn of(a: &Side<'_>, b: &Side<'_>) -> Design {
        Design::ordered(a, b, order(a, b))
    }

    /// The design of runs that were taken in turns (ABBA), as many of each side.
    pub(super) fn in_turns(a: &Side<'_>, b: &Side<'_>) -> Design {
        let order = if counted(&a.whole) { Order::BySeed } else { Order::InTurns };
        Design::ordered(a, b, (order, false))
    }

    fn ordered(a: &Side<'_>, b: &Side<'_>, (order, same_first): (Order, bool)) -> Design {
        let runs = (a.runs.len(), b.runs.len());
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
        Design { runs, method, order, same_first, judged: 0, level: LEVEL }
    }

    /// The design of an interim look: more runs may follow.
    pub(super) fn at(self, look: Look) -> Design {
        let method = match self.method {
            Method::Paired if !look.paired => Method::Unpaired,
            method => method,
        };
        Design { method, level: look.level, ..self }
    }

    /// Describes the design to the reader of the figures.
    pub fn words(&self) -> String {
        let judged = match self.judged {
            0 | 1 => String::new(),
            _ if self.level < LEVEL => String::new(),
            n => format!(
                "; with no real difference, at most 5 of 100 comparisons report one among {n} \
                 verdicts"
            ),
        };
        match self.method {
            Method::Exact => "Time is counted in instructions and exactly repeatable: all \
                              differences are real. To see the effect of other seeds, run at least \
                              six seeds per side."
                .to_owned(),
            Method::Paired => format!(
                "{} interleaved runs per side: B/A is the median over pairs, with its 95 % \
                 bootstrap interval over runs{judged}.{}",
                self.runs.0,
                self.drift()
            ),
            Method::Unpaired => format!(
                "{} runs and {} runs, {}: B/A is the ratio of the medians over runs, with its 95 % \
                 bootstrap interval over runs{judged}.{}",
                self.runs.0,
                self.runs.1,
                match self.order {
                    Order::BySeed => "with different seeds",
                    Order::InTurns => "interleaved",
                    Order::Mixed | Order::OneAfterTheOther => "not interleaved",
                },
                self.drift()
            ),
            Method::None => format!("Inconclusive: {}.", self.too_few()),
        }
    }

    /// Says how a change of the machine may look like a difference, and what to do.
    fn drift(&self) -> &'static str {
        match self.order {
            Order::OneAfterTheOther => {
                " All runs of one side were taken before those of the other: any change of the \
                 machine in between looks like a difference. Interleave the runs (ABBA)."
            }
            Order::Mixed => {
                " The sides did not take turns: a change of the machine meanwhile may look like a \
                 difference. Interleave the runs (ABBA)."
            }
            Order::InTurns if self.same_first => {
                " The same side came first in every pair: a steady change of the machine may look \
                 like a difference. Let the sides change places (ABBA)."
            }
            Order::InTurns | Order::BySeed => "",
        }
    }

    /// Says why the comparison is inconclusive, and what to do.
    pub(super) fn too_few(&self) -> String {
        let how = match self.order {
            Order::BySeed => "4 runs with different seeds",
            _ => "6 interleaved runs (ABBA)",
        };
        let runs = match self.runs {
            (1, 1) => "one run per side".to_owned(),
            (a, b) => format!("{a} and {b} runs"),
        };
        format!("{runs}; at least {how} per side are needed (latlab ab)")
    }
}

/// Whether the pairs have enough arrangements. The runs of each pair can be exchanged or not.
fn pairs_suffice(pairs: usize) -> bool {
    u32::try_from(pairs).is_ok_and(|pairs| pairs > FEWEST_ARRANGEMENTS.ilog2())
}

/// Whether there are enough arrangements of unpaired runs, and enough runs of each side to draw from:
/// intervals of one or two runs would be far too narrow.
fn sets_suffice((a, b): (usize, usize)) -> bool {
    if a.min(b) < FEWEST_OF_A_SIDE {
        return false;
    }
    let mut ways: u128 = 1;
    for n in 1..=a.min(b) as u128 {
        ways = ways * (a.max(b) as u128 + n) / n;
        if ways >= FEWEST_ARRANGEMENTS {
            return true;
        }
    }
    false
}

/// Returns the order of the runs, and whether the same side came first in each pair. Runs are
/// interleaved if no pair begins before the previous pair has begun: A B, B A, A B.
fn order(a: &Side<'_>, b: &Side<'_>) -> (Order, bool) {
    if counted(&a.whole) {
        return (Order::BySeed, false);
    }
    let begun = |side: &Side<'_>| side.runs.iter().map(|run| run.started).collect::<Vec<_>>();
    let (a, b) = (begun(a), begun(b));
    if a.len() == b.len() {
        let pairs: Vec<_> = a.iter().zip(&b).map(|(a, b)| (*a.min(b), *a.max(b))).collect();
        if pairs.windows(2).all(|two| two[0].1 <= two[1].0) {
            let mut both = a.iter().zip(&b).map(|(a, b)| a < b);
            let first = both.next();
            return (Order::InTurns, both.all(|one| Some(one) == first));
        }
    }
    let apart = |first: &[_], second: &[_]| first.last() <= second.first();
    let is_apart = apart(&a, &b) || apart(&b, &a);
    (if is_apart { Order::OneAfterTheOther } else { Order::Mixed }, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_is_six_pairs_or_four_and_four_runs() {
        assert!(!pairs_suffice(5) && pairs_suffice(6));
        assert!(!sets_suffice((3, 3)) && sets_suffice((4, 4)) && sets_suffice((3, 10)));
        assert!(
            !sets_suffice((1, 39)) && !sets_suffice((100, 2)),
            "their intervals are too narrow"
        );
        assert!(sets_suffice((100_000, 100_000)));
    }
}
