//! Two records side by side: the same latency, quantile by quantile, and what differs between
//! the machines and plans behind them. No statistics: one run each says nothing about chance.

mod scans;

pub use scans::ScanPair;

use crate::histogram::{DamagedHistogram, Histogram};
use crate::record::{Incomparable, Record, Series};
use crate::scan::Scan;
use crate::time::Nanos;
use serde::Serialize;
use serde_json::Value;

/// What two records have in common, and where they differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
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

/// One latency in both records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The probe.
    pub probe: String,
    /// Its two ends.
    pub span: (String, String),
    /// Loads beside it, in the first and in the second record.
    pub load: (Vec<String>, Vec<String>),
    /// Samples recorded.
    pub recorded: (u64, u64),
    /// Periods missed.
    pub missed: (u64, u64),
    /// The figures, as recorded and, where periods were missed, corrected.
    pub rows: Vec<Row>,
}

/// One figure of a latency in both records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// `min`, `p50`, … `max`, `corrected p99`.
    pub name: String,
    /// In the first record.
    pub a: Nanos,
    /// In the second record.
    pub b: Nanos,
    /// The second by the first; none where the first is 0, and for the maximum of runs of unequal
    /// length, which grows with their length.
    pub ratio: Option<f64>,
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
}

/// Lays `a` and `b` side by side.
pub fn compare(a: &Record, b: &Record) -> Result<Comparison, NotCompared> {
    a.same_time(b)?;
    let (ours, theirs) = (distributions(a)?, distributions(b)?);
    let mut latencies = Vec::new();
    let mut unmatched = Vec::new();
    for (nth, mine) in ours.iter().enumerate() {
        match twin(mine, &ours[..nth], &theirs) {
            Some(other) => latencies.push(mine.beside(other)),
            None => unmatched.push(format!("{} is only in the first", mine.name())),
        }
    }
    let alone = theirs
        .iter()
        .enumerate()
        .filter(|(nth, other)| twin(other, &theirs[..*nth], &ours).is_none());
    unmatched.extend(alone.map(|(_, other)| format!("{} is only in the second", other.name())));
    let scans = scans::pairs(&a.scans, &b.scans);
    for (mine, others, which) in [(a, b, "first"), (b, a, "second")] {
        let alone = scans::alone(&mine.scans, &others.scans).into_iter();
        unmatched.extend(alone.map(|scan| format!("{} is only in the {which}", scanned(scan))));
    }
    if latencies.is_empty() && scans.is_empty() {
        return Err(NotCompared::NothingInCommon(names(a, &ours), names(b, &theirs)));
    }
    Ok(Comparison {
        latencies,
        scans,
        unmatched,
        machine: differences(&a.machine, &b.machine),
        plan: differences(&a.plan, &b.plan),
    })
}

/// The counterpart of `one` among `others`: of several runs of the same probe, that in the same
/// place. `before` are those that come before `one` in its own record.
fn twin<'a, 'b>(
    one: &Distribution<'_>,
    before: &[Distribution<'_>],
    others: &'a [Distribution<'b>],
) -> Option<&'a Distribution<'b>> {
    let place = before.iter().filter(|earlier| earlier.same_latency(one)).count();
    others.iter().filter(|other| other.same_latency(one)).nth(place)
}

/// One probe's latency, all CPUs together.
struct Distribution<'a> {
    first: &'a Series,
    histogram: Histogram,
    missed: u64,
}

fn distributions(record: &Record) -> Result<Vec<Distribution<'_>>, DamagedHistogram> {
    let mut all: Vec<Distribution<'_>> = Vec::new();
    // The moments of a scan were chosen: their distribution says little about the kernel.
    for series in record.series.iter().filter(|series| !series.is_of_scan()) {
        let one = Distribution {
            first: series,
            histogram: series.histogram()?,
            missed: series.counts.missed,
        };
        if let Some(same) = all.iter_mut().find(|other| other.same_run(&one)) {
            same.histogram.add(&one.histogram);
            same.missed = same.missed.saturating_add(one.missed);
        } else {
            all.push(one);
        }
    }
    Ok(all)
}

impl Distribution<'_> {
    /// The same question; loads and parameters may differ, as what they do is what is compared.
    fn same_latency(&self, other: &Distribution<'_>) -> bool {
        self.first.probe == other.first.probe && self.first.span == other.first.span
    }

    /// The same question asked in the same way, so that its CPUs can be taken together.
    fn same_run(&self, other: &Distribution<'_>) -> bool {
        let (a, b) = (self.first, other.first);
        self.same_latency(other)
            && (a.interval, &a.load, &a.profile) == (b.interval, &b.load, &b.profile)
            && a.schedule == b.schedule
    }

    fn name(&self) -> String {
        format!("{} ({} → {})", self.first.probe, self.first.span.0, self.first.span.1)
    }

    fn beside(&self, other: &Distribution<'_>) -> Latency {
        let fair = self.histogram.count() == other.histogram.count();
        let mut rows = rows("", &self.histogram, &other.histogram, fair);
        if self.missed > 0 || other.missed > 0 {
            let corrected = |d: &Distribution<'_>| match d.first.interval {
                Some(interval) => d.histogram.corrected(interval),
                None => d.histogram.clone(),
            };
            let quantiles = |row: &Row| row.name.starts_with("corrected p");
            rows.extend(
                self::rows("corrected ", &corrected(self), &corrected(other), fair)
                    .into_iter()
                    .filter(quantiles),
            );
        }
        Latency {
            probe: self.first.probe.clone(),
            span: self.first.span.clone(),
            load: (self.first.load.clone(), other.first.load.clone()),
            recorded: (self.histogram.count(), other.histogram.count()),
            missed: (self.missed, other.missed),
            rows,
        }
    }
}

fn scanned(scan: &Scan) -> String {
    format!("a scan of {}", scan.call.name)
}

fn names(record: &Record, distributions: &[Distribution<'_>]) -> String {
    let scans = record.scans.iter().map(scanned);
    let names: Vec<String> = distributions.iter().map(Distribution::name).chain(scans).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn rows(prefix: &str, a: &Histogram, b: &Histogram, fair: bool) -> Vec<Row> {
    let figures = |h: &Histogram| {
        let mut figures = vec![("min", h.min()), ("mean", h.mean())];
        figures.extend(h.quantiles().named());
        figures.push(("max", h.max()));
        figures
    };
    figures(a)
        .into_iter()
        .zip(figures(b))
        .map(|((name, a), (_, b))| {
            let row = Row::new(&format!("{prefix}{name}"), a, b);
            Row { ratio: row.ratio.filter(|_| fair || name != "max"), ..row }
        })
        .collect()
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "a ratio is shown with three digits")]
    fn new(name: &str, a: Nanos, b: Nanos) -> Row {
        let ratio = (a.0 > 0).then(|| b.0 as f64 / a.0 as f64);
        Row { name: name.to_owned(), a, b, ratio }
    }
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
