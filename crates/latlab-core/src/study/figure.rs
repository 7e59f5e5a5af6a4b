//! Figures: the columns of a study's table, computed from the records of a cell.

use super::quantity::Quantity;
use crate::histogram::Histogram;
use crate::record::{Record, Series};
use crate::scan::Scan;
use crate::time::Nanos;
use std::cmp::Reverse;

/// Prefix of scans among the names of probes.
pub(super) const SCAN: &str = "scan.";

/// A column of a study's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyFigure {
    /// Name in claims.
    pub name: String,
    /// Title in the table.
    pub title: String,
    /// Byte offset of the text that names its source.
    pub at: usize,
    /// The data it is computed from.
    pub of: FigureSource,
    /// The statistic of that data.
    pub take: Statistic,
}

/// The data that a figure is computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FigureSource {
    /// The samples of a probe on all CPUs: of the span with this end, or of the first span.
    Series {
        /// The probe's name.
        probe: String,
        /// The end of the span, in words.
        span: Option<String>,
    },
    /// A single value that a probe reports, once per repetition or more often.
    Value {
        /// The probe's name.
        probe: String,
        /// The value's name.
        name: String,
    },
    /// The work of a load.
    Work {
        /// The load's name.
        load: String,
    },
}

/// A statistic of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The minimum.
    Min,
    /// The mean.
    Mean,
    /// The maximum.
    Max,
    /// The standard deviation.
    Stddev,
    /// A quantile, in ten-thousandths.
    Quantile(u16),
    /// The very first sample, warm-up included.
    First,
    /// Number of samples.
    Recorded,
    /// Number of periods without a sample.
    Missed,
    /// Number of samples before the moment they are measured from, which count as 0.
    Early,
    /// Number of non-preemptible sections that a scan found; the maximum over repetitions.
    Sections,
    /// The longest latency of a scan, of the minima at each moment; the maximum over repetitions.
    Peak,
    /// The median duration of the scanned call; the maximum over repetitions.
    Duration,
    /// The longest time until the interrupt handler ran, of all moments of a scan.
    Irt,
    /// The work of a load.
    Done,
    /// The work of a load per second of CPU time.
    Rate,
}

impl Statistic {
    /// All statistics, by name.
    pub const ALL: [(&'static str, Statistic); 19] = [
        ("min", Statistic::Min),
        ("mean", Statistic::Mean),
        ("max", Statistic::Max),
        ("stddev", Statistic::Stddev),
        ("p50", Statistic::Quantile(5_000)),
        ("p90", Statistic::Quantile(9_000)),
        ("p99", Statistic::Quantile(9_900)),
        ("p99.9", Statistic::Quantile(9_990)),
        ("p99.99", Statistic::Quantile(9_999)),
        ("first", Statistic::First),
        ("recorded", Statistic::Recorded),
        ("missed", Statistic::Missed),
        ("early", Statistic::Early),
        ("sections", Statistic::Sections),
        ("peak", Statistic::Peak),
        ("duration", Statistic::Duration),
        ("irt", Statistic::Irt),
        ("done", Statistic::Done),
        ("rate", Statistic::Rate),
    ];

    /// Returns the statistic of this name.
    pub fn named(name: &str) -> Option<Statistic> {
        Statistic::ALL.iter().find(|(known, _)| *known == name).map(|(_, take)| *take)
    }

    /// Whether only scans have it.
    fn is_of_scan(self) -> bool {
        use Statistic::{Duration, Irt, Peak, Sections};
        matches!(self, Sections | Peak | Duration | Irt)
    }
}

impl FigureSource {
    /// Returns the probe, the scan or the load, in words.
    pub(super) fn words(&self) -> String {
        match self {
            FigureSource::Series { probe, .. } | FigureSource::Value { probe, .. } => {
                match probe.strip_prefix(SCAN) {
                    Some(call) => format!("a scan of '{call}'"),
                    None => format!("the probe '{probe}'"),
                }
            }
            FigureSource::Work { load } => format!("the load '{load}'"),
        }
    }

    /// Whether this statistic is defined for this data.
    pub fn has(&self, take: Statistic) -> bool {
        match self {
            FigureSource::Series { probe, .. } => match take {
                Statistic::Done | Statistic::Rate => false,
                _ if take.is_of_scan() => probe.starts_with(SCAN),
                _ => true,
            },
            FigureSource::Value { .. } => {
                matches!(take, Statistic::Min | Statistic::Mean | Statistic::Max)
            }
            FigureSource::Work { .. } => matches!(take, Statistic::Done | Statistic::Rate),
        }
    }
}

impl StudyFigure {
    /// Returns its dimension: the power of time.
    pub fn kind(&self) -> i32 {
        let counts =
            [Statistic::Recorded, Statistic::Missed, Statistic::Early, Statistic::Sections];
        let counted = counts.contains(&self.take);
        i32::from(matches!(self.of, FigureSource::Series { .. }) && !counted)
    }

    /// Whether it is the maximum of a probe's samples, scans excluded.
    pub fn is_worst(&self) -> bool {
        let sampled =
            matches!(&self.of, FigureSource::Series { probe, .. } if !probe.starts_with(SCAN));
        sampled && self.take == Statistic::Max
    }

    /// Returns its value over all repetitions, in nanoseconds or as a number; none if a repetition
    /// lacks the data.
    pub fn of(&self, repetitions: &[Record]) -> Option<Quantity> {
        let value = match &self.of {
            FigureSource::Series { probe, span } => match self.take {
                Statistic::Sections => {
                    scan_maximum(repetitions, probe, |scan| Some(scan.sections.len() as u64))
                }
                Statistic::Peak => scan_maximum(repetitions, probe, |scan| Some(scan.peak()?.0)),
                Statistic::Duration => {
                    scan_maximum(repetitions, probe, |scan| Some(scan.duration.median.0))
                }
                Statistic::Irt => {
                    scan_maximum(repetitions, probe, |scan| Some(scan.longest_irt()?.0))
                }
                _ => self.series_value(repetitions, probe, span.as_deref()),
            },
            FigureSource::Value { probe, name } => self.reported_value(repetitions, probe, name),
            FigureSource::Work { load } => self.work_value(repetitions, load),
        };
        value.filter(|value| value.is_finite()).map(|value| Quantity { value, time: self.kind() })
    }

    /// Returns the series of a record that it is computed from, on all CPUs; none for other data.
    pub fn series<'a>(&self, record: &'a Record) -> Vec<&'a Series> {
        match &self.of {
            FigureSource::Series { probe, span } => series_of_span(record, probe, span.as_deref()),
            FigureSource::Value { .. } | FigureSource::Work { .. } => Vec::new(),
        }
    }

    /// Returns the index of the repetition whose series have the longest latency, the first one if
    /// several have it; none without repetitions.
    pub fn worst_repetition(&self, repetitions: &[Record]) -> Option<usize> {
        let longest = |record| self.series(record).iter().map(|series| series.max).max();
        (0..repetitions.len()).min_by_key(|nth| Reverse(longest(&repetitions[*nth])))
    }

    #[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
    fn series_value(&self, all: &[Record], probe: &str, span: Option<&str>) -> Option<f64> {
        let mut histogram = Histogram::new();
        let (mut missed, mut early, mut first) = (0, 0, None);
        for record in all {
            let series = series_of_span(record, probe, span);
            if series.is_empty() {
                return None;
            }
            for one in series {
                histogram.add(&one.histogram().ok()?);
                missed += one.counts.missed;
                early += one.counts.below_zero;
                first = first.max(one.first);
            }
        }
        let time = |time: Nanos| Some(Quantity::time(time).value);
        match self.take {
            Statistic::Recorded => return Some(histogram.count() as f64),
            Statistic::Missed => return Some(missed as f64),
            Statistic::Early => return Some(early as f64),
            Statistic::First => return time(first?),
            _ if histogram.count() == 0 => return None,
            _ => {}
        }
        match self.take {
            Statistic::Min => time(histogram.min()),
            Statistic::Mean => Some(histogram.sum() as f64 / histogram.count() as f64),
            Statistic::Stddev => time(histogram.stddev()),
            Statistic::Quantile(share) => time(histogram.quantile(f64::from(share) / 10_000.0)),
            _ => time(histogram.max()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 values")]
    fn reported_value(&self, all: &[Record], probe: &str, name: &str) -> Option<f64> {
        let mut values = Vec::new();
        for record in all {
            let mine = record.figures.iter().filter(|one| one.probe == probe && one.name == name);
            let before = values.len();
            values.extend(mine.map(|one| one.value));
            if values.len() == before {
                return None;
            }
        }
        match self.take {
            Statistic::Min => values.into_iter().reduce(f64::min),
            Statistic::Max => values.into_iter().reduce(f64::max),
            _ => Some(values.iter().sum::<f64>() / values.len() as f64),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "work is shown with four digits")]
    fn work_value(&self, all: &[Record], load: &str) -> Option<f64> {
        let (mut done, mut time) = (0, Nanos(0));
        for record in all {
            let mine: Vec<_> = record.work.iter().filter(|work| work.load == load).collect();
            if mine.is_empty() {
                return None;
            }
            done += mine.iter().map(|work| work.done).sum::<u64>();
            time = mine.iter().fold(time, |time, work| time + work.cpu_ns);
        }
        Some(match self.take {
            Statistic::Rate => done as f64 / time.as_secs_f64(),
            _ => done as f64,
        })
    }
}

/// Returns the maximum of a property over all scans of this name; none if a record has no such
/// scan.
#[expect(clippy::cast_precision_loss, reason = "a latency of 2^53 ns is 104 days long")]
fn scan_maximum(all: &[Record], name: &str, has: impl Fn(&Scan) -> Option<u64>) -> Option<f64> {
    let call = name.strip_prefix(SCAN)?;
    let mut most = None;
    for record in all {
        let scans = record.scans.iter().filter(|scan| scan.call.name == call);
        most = most.max(Some(scans.filter_map(&has).max()?));
    }
    most.map(|most| most as f64)
}

/// Returns a probe's series of the span with this end, or of its first span.
fn series_of_span<'a>(record: &'a Record, probe: &str, span: Option<&str>) -> Vec<&'a Series> {
    let of_probe: Vec<&Series> =
        record.series.iter().filter(|series| series.probe == probe).collect();
    let first = of_probe.first().map(|series| series.span.1.as_str());
    let end = span.or(first).unwrap_or_default();
    of_probe.into_iter().filter(|series| series.span.1 == end).collect()
}
