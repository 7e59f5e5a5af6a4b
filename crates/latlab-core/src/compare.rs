//! Comparison of two sets of runs: the same latencies quantile by quantile, whether they differ,
//! and the differences between their machines and plans.
//!
//! The unit of comparison is the run, never the sample: samples of one run are correlated, and a
//! million of them carry no more information about run-to-run variation than one (ADR 27).

mod bootstrap;
mod difference;
mod extreme;
mod judging;
mod latency;
pub mod limit;
mod maxima;
mod randomization;
mod runs;
mod scans;
mod summary;
pub mod turns;
mod verdict;

#[cfg(test)]
mod tests;

pub use crate::interval::Interval;
pub use difference::{Change, Difference};
pub use extreme::{Extreme, Level};
pub use latency::{Latency, Row};
pub use maxima::{Bound, Maxima};
pub use runs::{Design, Method, Order, distinct};
pub use scans::ScanPair;
pub use summary::by;
pub use verdict::{Judged, LEVEL, Verdict};

use self::difference::differences;
use self::judging::Judging;
use self::latency::{Distribution, SideLatency, counterpart, distributions};
use self::runs::Side;
use self::turns::Look;
use crate::histogram::DamagedHistogram;
use crate::record::{Incomparable, Record};
use crate::scan::Scan;
use serde::Serialize;

/// The common latencies of two sets of runs, and the differences between the sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// How they are compared.
    pub design: Design,
    /// How many times as long the runs have to be before a figure can be judged, whatever their
    /// number; none where one can be.
    #[serde(skip)]
    pub too_short: Option<f64>,
    /// Number of runs of each side that ended before their plans did.
    pub cut_short: (usize, usize),
    /// Number of runs of each side that lost a load, a measured CPU or a setting.
    pub lost_part: (usize, usize),
    /// Number of runs of each side that a sample above their `--stop-above` ended.
    pub stopped_above: (usize, usize),
    /// The latencies that both sides have, all CPUs together.
    pub latencies: Vec<Latency>,
    /// The calls that were scanned on both sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scans: Vec<ScanPair>,
    /// The greatest figures of these calls, for limits.
    #[serde(skip)]
    greatest: scans::Greatest,
    /// Latencies and scans that only one side has, in words.
    pub unmatched: Vec<String>,
    /// Differences between the machines of the first runs.
    pub machine: Vec<Difference>,
    /// Differences between the machines of each side's runs.
    pub machine_of_runs: (Vec<Difference>, Vec<Difference>),
    /// Differences between the plans.
    pub plan: Vec<Difference>,
}

/// Why two sets of records can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Their times or plans differ.
    #[error(transparent)]
    Incomparable(#[from] Incomparable),
    /// They have no latency and no scan in common.
    #[error("the two sides have nothing in common: one has {0}, the other {1}")]
    NothingInCommon(String, String),
    /// A record that was not read by [`Record::from_json`].
    #[error(transparent)]
    Damaged(#[from] DamagedHistogram),
    /// A side is empty.
    #[error("there is no run to compare")]
    NoRun,
}

/// Compares the runs of `a` with those of `b`. The runs of each side must have the same plan,
/// except for its seed.
pub fn compare(a: &[Record], b: &[Record]) -> Result<Comparison, CompareError> {
    let sides = [a, b].map(|side| distinct(side.iter().collect()));
    compare_by(sides, Judging::Quantiles, Design::of)
}

/// Compares runs that were taken in turns (ABBA); more turns may follow. Both sides have the same
/// number of runs, in the order in which they were taken.
pub fn compare_at(a: &[Record], b: &[Record], look: Look) -> Result<Comparison, CompareError> {
    compare_turns(a, b, Judging::Quantiles, look)
}

/// Like [`compare_at`], for runs of equal length: judges the highest quantile that has enough
/// samples, and the worst sample.
pub fn compare_lateness_at(
    a: &[Record],
    b: &[Record],
    look: Look,
) -> Result<Comparison, CompareError> {
    compare_turns(a, b, Judging::Lateness, look)
}

/// The start times of the runs do not matter: each side may have a machine, and so a clock, of its
/// own.
fn compare_turns(
    a: &[Record],
    b: &[Record],
    judging: Judging,
    look: Look,
) -> Result<Comparison, CompareError> {
    let sides = [a, b].map(|side| side.iter().collect());
    compare_by(sides, judging, |a, b| Design::in_turns(a, b).at(look))
}

fn compare_by(
    [a, b]: [Vec<&Record>; 2],
    judging: Judging,
    design_of: impl Fn(&Side<'_>, &Side<'_>) -> Design,
) -> Result<Comparison, CompareError> {
    let (Some(a), Some(b)) = (Side::of(a)?, Side::of(b)?) else {
        return Err(CompareError::NoRun);
    };
    a.whole.same_time(&b.whole)?;
    let (ours, theirs) = (Distributions::of(&a)?, Distributions::of(&b)?);
    let mut design = design_of(&a, &b);
    let mut latencies = Vec::new();
    let mut unmatched = Vec::new();
    for (nth, mine) in ours.whole.iter().enumerate() {
        match theirs.counterpart(mine, &ours.whole[..nth], &b) {
            Some(other) => {
                let mine = SideLatency { whole: mine, runs: ours.runs_of(nth), side: &a };
                latencies.push(mine.compared_with(&other, &design));
            }
            None => unmatched.push(format!("{} is only in the first", mine.name())),
        }
    }
    design.judged = judging::judge(&mut latencies, &design, judging);
    let too_short = judging.too_short(&latencies).filter(|_| design.judged == 0);
    if design.method != Method::Exact {
        judging::estimate(&mut latencies);
    }
    let alone = theirs.whole.iter().enumerate();
    let alone = alone
        .filter(|(nth, other)| counterpart(other, &theirs.whole[..*nth], &ours.whole).is_none());
    unmatched.extend(alone.map(|(_, other)| format!("{} is only in the second", other.name())));
    let scans = scans::pairs(&a.whole.scans, &b.whole.scans);
    for (mine, others, which) in [(&a, &b, "first"), (&b, &a, "second")] {
        let alone = scans::alone(&mine.whole.scans, &others.whole.scans).into_iter();
        unmatched.extend(alone.map(|scan| format!("{} is only in the {which}", scan_name(scan))));
    }
    if latencies.is_empty() && scans.is_empty() {
        return Err(CompareError::NothingInCommon(ours.names(&a), theirs.names(&b)));
    }
    let both = |warning| (a.count(warning), b.count(warning));
    Ok(Comparison {
        design,
        too_short,
        cut_short: both(Record::cut_short),
        lost_part: both(Record::lost_part),
        stopped_above: both(Record::stopped_above),
        latencies: latencies.into_iter().map(|(latency, _)| latency).collect(),
        scans,
        greatest: scans::greatest(&a.whole.scans, &b.whole.scans),
        unmatched,
        machine: differences(&a.whole.machine, &b.whole.machine),
        machine_of_runs: (a.machine_differences(), b.machine_differences()),
        plan: differences(&a.whole.plan, &b.whole.plan),
    })
}

/// The latencies of a side: of all runs together, and of each run.
struct Distributions<'a> {
    whole: Vec<Distribution<'a>>,
    runs: Vec<Vec<Distribution<'a>>>,
}

impl<'a> Distributions<'a> {
    fn of(side: &'a Side<'a>) -> Result<Distributions<'a>, DamagedHistogram> {
        let runs = side.runs.iter().map(|run| distributions(run));
        Ok(Distributions {
            whole: distributions(&side.whole)?,
            runs: runs.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the latency with this index from each run that has it.
    fn runs_of(&'a self, nth: usize) -> Vec<&'a Distribution<'a>> {
        let (one, before) = (&self.whole[nth], &self.whole[..nth]);
        self.runs.iter().filter_map(|run| counterpart(one, before, run)).collect()
    }

    /// Returns the counterpart of `one`, a latency of the other side that follows `before` there.
    fn counterpart(
        &'a self,
        one: &Distribution<'_>,
        before: &[Distribution<'_>],
        side: &'a Side<'a>,
    ) -> Option<SideLatency<'a>> {
        let whole = counterpart(one, before, &self.whole)?;
        let nth = self.whole.iter().position(|other| std::ptr::eq(other, whole))?;
        Some(SideLatency { whole, runs: self.runs_of(nth), side })
    }

    fn names(&self, side: &Side<'_>) -> String {
        let scans = side.whole.scans.iter().map(scan_name);
        let names: Vec<String> = self.whole.iter().map(Distribution::name).chain(scans).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    }
}

fn scan_name(scan: &Scan) -> String {
    format!("a scan of {}", scan.call.name)
}
