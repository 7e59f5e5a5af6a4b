//! One latency in both sides, all CPUs together: its figures, and what is said of them.

use super::extreme::Tail;
use super::runs::{Design, Method, Side};
use super::verdict::{Judged, Runs};
use super::worst::Worst;
use crate::histogram::{DamagedHistogram, Histogram};
use crate::record::{Record, Series};
use crate::time::Nanos;
use serde::Serialize;

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
    /// What can be said of the worst.
    pub worst: Worst,
    /// Why nothing was judged, where nothing was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unknown: String,
}

/// One figure of a latency in both records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// `min`, `p50`, … `max`, `corrected p99`.
    pub name: String,
    /// In the first record, all runs together.
    pub a: Nanos,
    /// In the second record, all runs together.
    pub b: Nanos,
    /// The second by the first: where it is judged, the median over runs; none where the first is 0,
    /// and for the maximum of runs of unequal length, which grows with their length.
    pub ratio: Option<f64>,
    /// What was judged; absent where that says little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

/// One probe's latency, all CPUs together.
pub(super) struct Distribution<'a> {
    first: &'a Series,
    parts: Vec<&'a Series>,
    histogram: Histogram,
    missed: u64,
}

pub(super) fn distributions(record: &Record) -> Result<Vec<Distribution<'_>>, DamagedHistogram> {
    let mut all: Vec<Distribution<'_>> = Vec::new();
    // The moments of a scan were chosen: their distribution says little about the kernel.
    for series in record.series.iter().filter(|series| !series.is_of_scan()) {
        let one = Distribution {
            first: series,
            parts: vec![series],
            histogram: series.histogram()?,
            missed: series.counts.missed,
        };
        if let Some(same) = all.iter_mut().find(|other| other.same_run(&one)) {
            same.parts.push(series);
            same.histogram.add(&one.histogram);
            same.missed = same.missed.saturating_add(one.missed);
        } else {
            all.push(one);
        }
    }
    Ok(all)
}

/// The counterpart of `one` among `others`: of several runs of the same probe, that in the same
/// place. `before` are those that come before `one` in its own record.
pub(super) fn twin<'a, 'b>(
    one: &Distribution<'_>,
    before: &[Distribution<'_>],
    others: &'a [Distribution<'b>],
) -> Option<&'a Distribution<'b>> {
    let place = before.iter().filter(|earlier| earlier.same_latency(one)).count();
    others.iter().filter(|other| other.same_latency(one)).nth(place)
}

/// One latency of a side: all runs together, and each of them, where all of them have it.
pub(super) struct OfSide<'a> {
    pub(super) whole: &'a Distribution<'a>,
    pub(super) runs: Vec<&'a Distribution<'a>>,
    pub(super) side: &'a Side<'a>,
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

    pub(super) fn name(&self) -> String {
        format!("{} ({} → {})", self.first.probe, self.first.span.0, self.first.span.1)
    }

    /// As if every missed period had been sampled.
    fn corrected(&self) -> Histogram {
        match self.first.interval {
            Some(interval) => self.histogram.corrected(interval),
            None => self.histogram.clone(),
        }
    }
}

impl OfSide<'_> {
    /// Lays two sides of a latency beside each other; judged they are later, all together.
    pub(super) fn beside(&self, other: &OfSide<'_>, design: &Design) -> (Latency, Option<Runs>) {
        let (a, b) = (self.whole, other.whole);
        let fair = a.histogram.count() == b.histogram.count();
        let mut rows = rows("", &a.histogram, &b.histogram, fair);
        let missed = a.missed > 0 || b.missed > 0;
        if missed {
            let corrected = self::rows("corrected ", &a.corrected(), &b.corrected(), fair);
            rows.extend(corrected.into_iter().filter(|row| row.name.starts_with("corrected p")));
        }
        let of_runs = |side: &OfSide<'_>| -> Option<Vec<Histogram>> {
            let of = |run: &&Distribution<'_>| {
                if missed { run.corrected() } else { run.histogram.clone() }
            };
            let all = side.runs.len() == side.side.runs.len();
            all.then(|| side.runs.iter().map(of).collect())
        };
        let all = self.runs.iter().chain(&other.runs);
        let recorded = all.map(|run| run.histogram.clone()).collect();
        let runs = of_runs(self).zip(of_runs(other)).map(|(a, b)| Runs { a, b, recorded });
        let by_chance = design.method != Method::Exact;
        let mut worst = Worst::of((&a.histogram, a.missed), (&b.histogram, b.missed), by_chance);
        if by_chance {
            (worst.a.beyond, worst.b.beyond) = (self.tail().beyond(), other.tail().beyond());
        }
        if a.first.interval.is_none() || b.first.interval.is_none() {
            (worst.a.rate, worst.b.rate) = (None, None);
        }
        let unknown = match (&runs, design.method) {
            (_, Method::None) => design.too_few(),
            (None, _) => "not every run has it".to_owned(),
            _ => "the runs have too few samples for any quantile".to_owned(),
        };
        let latency = Latency {
            probe: a.first.probe.clone(),
            span: a.first.span.clone(),
            load: (a.first.load.clone(), b.first.load.clone()),
            recorded: (a.histogram.count(), b.histogram.count()),
            missed: (a.missed, b.missed),
            rows,
            worst,
            unknown,
        };
        (latency, runs)
    }

    fn tail(&self) -> Tail<'_> {
        let series = self.runs.iter().flat_map(|run| run.parts.iter().copied()).collect();
        Tail { runs: &self.side.runs, series, whole: &self.whole.histogram }
    }
}

impl Latency {
    /// The rows that are judged, and of which quantiles they are: where periods were missed, the
    /// corrected ones, as the others do not know of what happened meanwhile.
    pub(super) fn to_be_judged(&self) -> Vec<(usize, f64)> {
        let corrected = self.rows.iter().any(|row| row.name.starts_with("corrected "));
        let quantile = |row: &Row| {
            let name = match row.name.strip_prefix("corrected ") {
                Some(name) => Some(name),
                None if corrected => None,
                None => Some(row.name.as_str()),
            };
            let percent: f64 = name?.strip_prefix('p')?.parse().ok()?;
            Some(percent / 100.0)
        };
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(nth, row)| Some((nth, quantile(row)?))).collect()
    }
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
    pub(super) fn new(name: &str, a: Nanos, b: Nanos) -> Row {
        let ratio = (a.0 > 0).then(|| b.0 as f64 / a.0 as f64);
        Row { name: name.to_owned(), a, b, ratio, judged: None }
    }
}
