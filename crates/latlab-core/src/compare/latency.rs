//! One latency in both sides, all CPUs together: its figures, and its runs as they are judged.

use super::extreme::Tail;
use super::maxima::Maxima;
use super::runs::{Design, Method, Side};
use super::verdict::Judged;
use crate::histogram::{DamagedHistogram, Histogram, SHARES};
use crate::record::{Record, Series};
use crate::time::Nanos;
use serde::Serialize;

/// One latency in both records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The probe.
    pub probe: String,
    /// The two ends of its span.
    pub span: (String, String),
    /// Loads that ran, in the first and in the second record.
    pub load: (Vec<String>, Vec<String>),
    /// Samples recorded.
    pub recorded: (u64, u64),
    /// Periods missed.
    pub missed: (u64, u64),
    /// The figures, as recorded and, where periods were missed, corrected.
    pub rows: Vec<Row>,
    /// The maxima of both sides, and the bounds on larger latencies.
    pub worst: Maxima,
    /// Why there is no verdict; empty where there is one.
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
    /// The second divided by the first; the median over runs where it is judged. None where the
    /// first is 0, and for maxima of different numbers of samples, which grow with that number.
    pub ratio: Option<f64>,
    /// Of each side on which a scan found no section, its detection limit: no longer one was missed.
    #[serde(skip_serializing_if = "is_found")]
    pub none_above: (Option<Nanos>, Option<Nanos>),
    /// The verdict; absent for figures that are not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// Number of recorded samples above it, of the side that has fewer; none if it is no quantile.
    #[serde(skip)]
    pub(super) beyond: Option<f64>,
}

fn is_found(none_above: &(Option<Nanos>, Option<Nanos>)) -> bool {
    *none_above == (None, None)
}

/// One latency of a record, all CPUs together.
pub(super) struct Distribution<'a> {
    first: &'a Series,
    parts: Vec<&'a Series>,
    histogram: Histogram,
    missed: u64,
}

/// Returns the latencies of a record, except for those of scans.
pub(super) fn distributions(record: &Record) -> Result<Vec<Distribution<'_>>, DamagedHistogram> {
    let mut all: Vec<Distribution<'_>> = Vec::new();
    // A scan chooses its moments: their distribution says little about the kernel.
    for series in record.series.iter().filter(|series| !series.is_of_scan()) {
        let one = Distribution {
            first: series,
            parts: vec![series],
            histogram: series.histogram()?,
            missed: series.counts.missed,
        };
        if let Some(same) = all.iter_mut().find(|other| other.first.same_conditions(series)) {
            same.parts.push(series);
            same.histogram.add(&one.histogram);
            same.missed = same.missed.saturating_add(one.missed);
        } else {
            all.push(one);
        }
    }
    Ok(all)
}

/// Returns the counterpart of `one` among `others`: where a record has the same latency several
/// times, the one at the same position. `before` are the latencies before `one` in its own record.
pub(super) fn counterpart<'a, 'b>(
    one: &Distribution<'_>,
    before: &[Distribution<'_>],
    others: &'a [Distribution<'b>],
) -> Option<&'a Distribution<'b>> {
    let place = before.iter().filter(|earlier| earlier.same_latency(one)).count();
    others.iter().filter(|other| other.same_latency(one)).nth(place)
}

/// One latency of a side: all runs together, and each run that has it.
pub(super) struct SideLatency<'a> {
    pub(super) whole: &'a Distribution<'a>,
    pub(super) runs: Vec<&'a Distribution<'a>>,
    pub(super) side: &'a Side<'a>,
}

/// One latency of both sides, run by run, corrected where periods were missed.
pub(super) struct RunHistograms {
    pub(super) a: Vec<Histogram>,
    pub(super) b: Vec<Histogram>,
    /// The recorded samples of the first side's runs, then of the second's, without correction.
    pub(super) recorded: Vec<Histogram>,
}

impl Distribution<'_> {
    /// Whether both are the same latency. Loads and parameters may differ: their effect is
    /// compared.
    fn same_latency(&self, other: &Distribution<'_>) -> bool {
        self.first.probe == other.first.probe && self.first.span == other.first.span
    }

    pub(super) fn name(&self) -> String {
        format!("{} ({} → {})", self.first.probe, self.first.span.0, self.first.span.1)
    }

    /// Returns the histogram corrected for missed periods ([`Histogram::corrected`]).
    fn corrected(&self) -> Histogram {
        match self.first.interval {
            Some(interval) => self.histogram.corrected(interval),
            None => self.histogram.clone(),
        }
    }
}

impl SideLatency<'_> {
    /// Pairs the latency with the other side's. The verdicts follow later, for all latencies
    /// together.
    pub(super) fn compared_with(
        &self,
        other: &SideLatency<'_>,
        design: &Design,
    ) -> (Latency, Option<RunHistograms>) {
        let (a, b) = (self.whole, other.whole);
        let recorded = (&a.histogram, &b.histogram);
        let mut rows = rows("", recorded, recorded);
        let missed = a.missed > 0 || b.missed > 0;
        if missed {
            let whole = (&a.corrected(), &b.corrected());
            let corrected = self::rows("corrected ", whole, recorded);
            rows.extend(corrected.into_iter().filter(|row| row.name.starts_with("corrected p")));
        }
        rows.retain(|row| !self.is_bound(row.a, &row.name) && !other.is_bound(row.b, &row.name));
        let of_runs = |side: &SideLatency<'_>| -> Option<Vec<Histogram>> {
            let of = |run: &&Distribution<'_>| {
                if missed { run.corrected() } else { run.histogram.clone() }
            };
            let all = side.runs.len() == side.side.runs.len();
            all.then(|| side.runs.iter().map(of).collect())
        };
        let all = self.runs.iter().chain(&other.runs);
        let recorded = all.map(|run| run.histogram.clone()).collect();
        let runs = of_runs(self).zip(of_runs(other)).map(|(a, b)| RunHistograms { a, b, recorded });
        let unknown = match (&runs, design.method) {
            (_, Method::None) => design.too_few(),
            (None, _) => "not every run has this latency".to_owned(),
            _ => "the runs have too few samples for any quantile".to_owned(),
        };
        let latency = Latency {
            probe: a.first.probe.clone(),
            span: a.first.span.clone(),
            load: (a.first.load.clone(), b.first.load.clone()),
            recorded: (a.histogram.count(), b.histogram.count()),
            missed: (a.missed, b.missed),
            rows,
            worst: self.maxima(other, design.method != Method::Exact),
            unknown,
        };
        (latency, runs)
    }

    /// Whether this value of a row is only known to be at least as long.
    fn is_bound(&self, value: Nanos, name: &str) -> bool {
        let is_of_all = name == "mean" || name.starts_with("corrected ");
        let is_bound = |series: &Series| match name {
            "min" | "max" => false,
            _ if is_of_all => series.beyond.is_some(),
            _ => series.is_at_least(value),
        };
        self.runs.iter().flat_map(|run| &run.parts).any(|series| is_bound(series))
    }

    /// The maxima of both sides; `by_chance` unless the time is exactly repeatable.
    fn maxima(&self, other: &SideLatency<'_>, by_chance: bool) -> Maxima {
        let (a, b) = (self.whole, other.whole);
        let mut maxima = Maxima::of((&a.histogram, a.missed), (&b.histogram, b.missed), by_chance);
        if by_chance {
            (maxima.a.beyond, maxima.b.beyond) = (self.tail().beyond(), other.tail().beyond());
        }
        if a.first.interval.is_none() || b.first.interval.is_none() {
            (maxima.a.rate, maxima.b.rate) = (None, None);
        }
        maxima
    }

    fn tail(&self) -> Tail<'_> {
        let series = self.runs.iter().flat_map(|run| run.parts.iter().copied()).collect();
        Tail { runs: &self.side.runs, series, whole: &self.whole.histogram }
    }
}

impl Latency {
    /// Returns the indices of the judged rows and their quantiles: the corrected rows where periods
    /// were missed, because the others ignore the missed periods.
    pub(super) fn judged_rows(&self) -> Vec<(usize, f64)> {
        let corrected = self.rows.iter().any(|row| row.name.starts_with("corrected "));
        let quantile = |row: &Row| {
            let name = match row.name.strip_prefix("corrected ") {
                Some(name) => Some(name),
                None if corrected => None,
                None => Some(row.name.as_str()),
            };
            let name = name?;
            SHARES.iter().find(|(known, _)| *known == name).map(|(_, share)| *share)
        };
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(nth, row)| Some((nth, quantile(row)?))).collect()
    }
}

/// Returns the figures of the distributions of both sides, which were made of the recorded ones.
fn rows(prefix: &str, (a, b): Sides<'_>, recorded: Sides<'_>) -> Vec<Row> {
    let fair = recorded.0.count() == recorded.1.count();
    let figures = |h: &Histogram| {
        let mut figures = vec![("min", h.min()), ("mean", h.mean())];
        figures.extend(h.quantiles().named());
        figures.push(("max", h.max()));
        figures
    };
    figures(a)
        .into_iter()
        .zip(figures(b))
        .map(|((name, one), (_, other))| {
            let row = Row::new(&format!("{prefix}{name}"), one, other);
            let share = SHARES.iter().find(|(known, _)| *known == name).map(|(_, share)| *share);
            let beyond = share.map(|q| beyond(a, recorded.0, q).min(beyond(b, recorded.1, q)));
            Row { ratio: row.ratio.filter(|_| fair || name != "max"), beyond, ..row }
        })
        .collect()
}

/// A distribution of each side.
type Sides<'a> = (&'a Histogram, &'a Histogram);

/// Returns the number of recorded samples above a quantile of the `whole` distribution. Samples added
/// by its correction do not count: a single long sample adds many.
#[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
pub(super) fn beyond(whole: &Histogram, recorded: &Histogram, quantile: f64) -> f64 {
    let from = whole.quantile(quantile);
    let late = recorded.buckets().filter(|bucket| bucket.to > from).map(|bucket| bucket.count);
    let share = recorded.count() as f64 * (1.0 - quantile) + 1e-6;
    share.min(late.sum::<u64>() as f64)
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "a ratio is shown with three digits")]
    pub(super) fn new(name: &str, a: Nanos, b: Nanos) -> Row {
        let ratio = (a.0 > 0).then(|| b.0 as f64 / a.0 as f64);
        Row {
            name: name.to_owned(),
            a,
            b,
            ratio,
            none_above: (None, None),
            judged: None,
            beyond: None,
        }
    }
}
