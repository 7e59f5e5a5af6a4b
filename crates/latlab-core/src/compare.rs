//! Two sets of runs side by side: the same latencies, quantile by quantile, what can be said of their
//! difference, and what differs between the machines and plans behind them.
//!
//! What is compared are runs, never samples: those of one run hang together, and a million of them
//! say as much about chance as one (ADR 27).

mod bootstrap;
mod chance;
mod extreme;
mod latency;
pub mod limit;
mod runs;
mod scans;
mod verdict;
mod worst;

#[cfg(test)]
mod tests;

pub use bootstrap::Interval;
pub use extreme::{Extreme, Level};
pub use latency::{Latency, Row};
pub use runs::{Design, Method, Order, distinct};
pub use scans::ScanPair;
pub use verdict::{Judged, LEVEL, Verdict, by};
pub use worst::{Bound, Worst};

use self::latency::{Distribution, OfSide, distributions, twin};
use self::runs::Side;
use crate::histogram::DamagedHistogram;
use crate::record::{Incomparable, Record};
use crate::scan::Scan;
use serde::Serialize;
use serde_json::Value;

/// What two sets of runs have in common, and where they differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// How they are compared.
    pub design: Design,
    /// The latencies that both have, all CPUs together.
    pub latencies: Vec<Latency>,
    /// The calls that were scanned in both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scans: Vec<ScanPair>,
    /// Latencies and scans that only one has, in words.
    pub unmatched: Vec<String>,
    /// What differs between the machines.
    pub machine: Vec<Difference>,
    /// What differs between the plans.
    pub plan: Vec<Difference>,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// Its value in the first record.
    pub a: Value,
    /// Its value in the second record.
    pub b: Value,
}

/// Why two records were not compared.
#[derive(Debug, thiserror::Error)]
pub enum NotCompared {
    /// They must not be.
    #[error(transparent)]
    Incomparable(#[from] Incomparable),
    /// They have nothing in common.
    #[error("they have nothing in common: one has {0}, the other {1}")]
    NothingInCommon(String, String),
    /// A record that was not read by [`Record::from_json`].
    #[error(transparent)]
    Damaged(#[from] DamagedHistogram),
    /// There is no run.
    #[error("there is no run to compare")]
    NoRun,
}

/// Lays the runs of `a` and `b` side by side; those of each side repeat one plan, whatever the seed.
pub fn compare(a: &[Record], b: &[Record]) -> Result<Comparison, NotCompared> {
    let (Some(a), Some(b)) = (Side::of(a)?, Side::of(b)?) else {
        return Err(NotCompared::NoRun);
    };
    a.whole.same_time(&b.whole)?;
    let (ours, theirs) = (Distributions::of(&a)?, Distributions::of(&b)?);
    let mut design = Design::of(&a, &b);
    let mut latencies = Vec::new();
    let mut unmatched = Vec::new();
    for (nth, mine) in ours.whole.iter().enumerate() {
        match theirs.twin(mine, &ours.whole[..nth], &b) {
            Some(other) => {
                let mine = OfSide { whole: mine, runs: ours.runs_of(nth), side: &a };
                latencies.push(mine.beside(&other, &design));
            }
            None => unmatched.push(format!("{} is only in the first", mine.name())),
        }
    }
    design.judged = verdict::judge(&mut latencies, &design);
    if design.method != Method::Exact {
        verdict::estimate(&mut latencies);
    }
    let alone = theirs.whole.iter().enumerate();
    let alone =
        alone.filter(|(nth, other)| twin(other, &theirs.whole[..*nth], &ours.whole).is_none());
    unmatched.extend(alone.map(|(_, other)| format!("{} is only in the second", other.name())));
    let scans = scans::pairs(&a.whole.scans, &b.whole.scans);
    for (mine, others, which) in [(&a, &b, "first"), (&b, &a, "second")] {
        let alone = scans::alone(&mine.whole.scans, &others.whole.scans).into_iter();
        unmatched.extend(alone.map(|scan| format!("{} is only in the {which}", scanned(scan))));
    }
    if latencies.is_empty() && scans.is_empty() {
        return Err(NotCompared::NothingInCommon(ours.names(&a), theirs.names(&b)));
    }
    Ok(Comparison {
        design,
        latencies: latencies.into_iter().map(|(latency, _)| latency).collect(),
        scans,
        unmatched,
        machine: differences(&a.whole.machine, &b.whole.machine),
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

    /// The latency of all runs that is in this place of the whole, from each run that has it.
    fn runs_of(&'a self, nth: usize) -> Vec<&'a Distribution<'a>> {
        let (one, before) = (&self.whole[nth], &self.whole[..nth]);
        self.runs.iter().filter_map(|run| twin(one, before, run)).collect()
    }

    /// The counterpart of `one`, which has `before` before it in its own side.
    fn twin(
        &'a self,
        one: &Distribution<'_>,
        before: &[Distribution<'_>],
        side: &'a Side<'a>,
    ) -> Option<OfSide<'a>> {
        let whole = twin(one, before, &self.whole)?;
        let nth = self.whole.iter().position(|other| std::ptr::eq(other, whole))?;
        Some(OfSide { whole, runs: self.runs_of(nth), side })
    }

    fn names(&self, side: &Side<'_>) -> String {
        let scans = side.whole.scans.iter().map(scanned);
        let names: Vec<String> = self.whole.iter().map(Distribution::name).chain(scans).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    }
}

fn scanned(scan: &Scan) -> String {
    format!("a scan of {}", scan.call.name)
}

/// Fields of a machine that are measured, and differ from run to run on the same machine.
const MEASURED: [&str; 3] = ["clock_read_ns", "record_ns", "counters"];

/// The fields, at the top level, in which two of a kind differ.
fn differences<T: Serialize>(a: &T, b: &T) -> Vec<Difference> {
    let fields = |x: &T| match serde_json::to_value(x) {
        Ok(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    };
    let (a, b) = (fields(a), fields(b));
    let mut names: Vec<&String> =
        a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))).collect();
    names.retain(|name| !MEASURED.contains(&name.as_str()) && a.get(*name) != b.get(*name));
    let value = |map: &serde_json::Map<String, Value>, name: &str| {
        map.get(name).cloned().unwrap_or(Value::Null)
    };
    names
        .into_iter()
        .map(|name| Difference { field: name.clone(), a: value(&a, name), b: value(&b, name) })
        .collect()
}
