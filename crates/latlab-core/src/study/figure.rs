//! Figures: what a study takes of the records of a cell.

use super::quantity::Quantity;
use crate::histogram::Histogram;
use crate::record::{Record, Series};
use crate::scan::Scan;
use crate::time::Nanos;

/// What the names of scans among those of probes begin with.
pub(super) const SCAN: &str = "scan.";

/// A column of a study's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What claims call it.
    pub name: String,
    /// What the table calls it.
    pub title: String,
    /// The first byte of the words in the file that say of what it is taken.
    pub at: usize,
    /// Of what it is taken.
    pub of: Of,
    /// What is taken.
    pub take: Take,
}

/// What of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// The samples of a probe on all CPUs; of the span that ends so, or of its first.
    Series {
        /// The probe's name.
        probe: String,
        /// The second end of the span, in words.
        span: Option<String>,
    },
    /// A single value that a probe has found, once or in each repetition.
    Figure {
        /// The probe's name.
        probe: String,
        /// The figure's name.
        name: String,
    },
    /// What a load has done.
    Work {
        /// The load's name.
        load: String,
    },
}

/// Which value of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The smallest.
    Min,
    /// The mean.
    Mean,
    /// The largest.
    Max,
    /// The standard deviation.
    Stddev,
    /// A quantile, in ten-thousandths.
    Quantile(u16),
    /// The very first sample, warm-up included.
    First,
    /// How many samples.
    Recorded,
    /// How many periods passed without one.
    Missed,
    /// How many stretches a scan found that can't be preempted; the most that any repetition did.
    Regions,
    /// The longest latency of a scan, of the least of each moment; the longest of any repetition.
    Peak,
    /// How much a load did.
    Done,
    /// How much it did in a second of CPU time.
    Rate,
}

impl Take {
    /// All that can be taken, by name.
    pub const ALL: [(&'static str, Take); 16] = [
        ("min", Take::Min),
        ("mean", Take::Mean),
        ("max", Take::Max),
        ("stddev", Take::Stddev),
        ("p50", Take::Quantile(5_000)),
        ("p90", Take::Quantile(9_000)),
        ("p99", Take::Quantile(9_900)),
        ("p99.9", Take::Quantile(9_990)),
        ("p99.99", Take::Quantile(9_999)),
        ("first", Take::First),
        ("recorded", Take::Recorded),
        ("missed", Take::Missed),
        ("regions", Take::Regions),
        ("peak", Take::Peak),
        ("done", Take::Done),
        ("rate", Take::Rate),
    ];

    /// What has this name.
    pub fn named(name: &str) -> Option<Take> {
        Take::ALL.iter().find(|(known, _)| *known == name).map(|(_, take)| *take)
    }
}

impl Of {
    /// The probe, the scan or the load, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Of::Series { probe, .. } | Of::Figure { probe, .. } => match probe.strip_prefix(SCAN) {
                Some(call) => format!("a scan of '{call}'"),
                None => format!("the probe '{probe}'"),
            },
            Of::Work { load } => format!("the load '{load}'"),
        }
    }

    /// Whether this can be taken of it.
    pub fn has(&self, take: Take) -> bool {
        match self {
            Of::Series { probe, .. } => match take {
                Take::Done | Take::Rate => false,
                Take::Regions | Take::Peak => probe.starts_with(SCAN),
                _ => true,
            },
            Of::Figure { .. } => matches!(take, Take::Min | Take::Mean | Take::Max),
            Of::Work { .. } => matches!(take, Take::Done | Take::Rate),
        }
    }
}

impl Figure {
    /// What kind of value it is: the power of time.
    pub fn kind(&self) -> i32 {
        let counted = matches!(self.take, Take::Recorded | Take::Missed | Take::Regions);
        i32::from(matches!(self.of, Of::Series { .. }) && !counted)
    }

    /// Whether it is the longest latency of a probe's samples, but for those of a scan.
    pub fn is_worst(&self) -> bool {
        let sampled = matches!(&self.of, Of::Series { probe, .. } if !probe.starts_with(SCAN));
        sampled && self.take == Take::Max
    }

    /// Its value, in nanoseconds or as a number, of all repetitions together; none where any of
    /// them lacks it.
    pub fn of(&self, repetitions: &[Record]) -> Option<Quantity> {
        let value = match &self.of {
            Of::Series { probe, span } => match self.take {
                Take::Regions => {
                    of_scans(repetitions, probe, |scan| Some(scan.regions.len() as u64))
                }
                Take::Peak => of_scans(repetitions, probe, |scan| Some(scan.peak()?.0)),
                _ => self.of_series(repetitions, probe, span.as_deref()),
            },
            Of::Figure { probe, name } => self.of_figures(repetitions, probe, name),
            Of::Work { load } => self.of_work(repetitions, load),
        };
        value.filter(|value| value.is_finite()).map(|value| Quantity { value, time: self.kind() })
    }

    /// The series of a record that it is taken of, on all CPUs; none where it is of something else.
    pub fn series<'a>(&self, record: &'a Record) -> Vec<&'a Series> {
        match &self.of {
            Of::Series { probe, span } => of_span(record, probe, span.as_deref()),
            Of::Figure { .. } | Of::Work { .. } => Vec::new(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "2^53 samples take 285 years")]
    fn of_series(&self, all: &[Record], probe: &str, span: Option<&str>) -> Option<f64> {
        let mut histogram = Histogram::new();
        let (mut missed, mut first) = (0, None);
        for record in all {
            let series = of_span(record, probe, span);
            if series.is_empty() {
                return None;
            }
            for one in series {
                histogram.add(&one.histogram().ok()?);
                missed += one.counts.missed;
                first = first.max(one.first);
            }
        }
        let time = |time: Nanos| Some(Quantity::time(time).value);
        match self.take {
            Take::Recorded => return Some(histogram.count() as f64),
            Take::Missed => return Some(missed as f64),
            Take::First => return time(first?),
            _ if histogram.count() == 0 => return None,
            _ => {}
        }
        match self.take {
            Take::Min => time(histogram.min()),
            Take::Mean => Some(histogram.sum() as f64 / histogram.count() as f64),
            Take::Stddev => time(histogram.stddev()),
            Take::Quantile(share) => time(histogram.quantile(f64::from(share) / 10_000.0)),
            _ => time(histogram.max()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody measures 2^52 figures")]
    fn of_figures(&self, all: &[Record], probe: &str, name: &str) -> Option<f64> {
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
            Take::Min => values.into_iter().reduce(f64::min),
            Take::Max => values.into_iter().reduce(f64::max),
            _ => Some(values.iter().sum::<f64>() / values.len() as f64),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a load's work is shown, not counted with")]
    fn of_work(&self, all: &[Record], load: &str) -> Option<f64> {
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
            Take::Rate => done as f64 / time.as_secs_f64(),
            _ => done as f64,
        })
    }
}

/// The most that any scan of this name has of something; none where a record has no such scan.
#[expect(clippy::cast_precision_loss, reason = "a latency of 2^53 ns is 104 days long")]
fn of_scans(all: &[Record], name: &str, has: impl Fn(&Scan) -> Option<u64>) -> Option<f64> {
    let call = name.strip_prefix(SCAN)?;
    let mut most = None;
    for record in all {
        let scans = record.scans.iter().filter(|scan| scan.call.name == call);
        most = most.max(Some(scans.filter_map(&has).max()?));
    }
    most.map(|most| most as f64)
}

/// A probe's series of the span that ends so, or of its first.
fn of_span<'a>(record: &'a Record, probe: &str, span: Option<&str>) -> Vec<&'a Series> {
    let of_probe: Vec<&Series> =
        record.series.iter().filter(|series| series.probe == probe).collect();
    let first = of_probe.first().map(|series| series.span.1.as_str());
    let end = span.or(first).unwrap_or_default();
    of_probe.into_iter().filter(|series| series.span.1 == end).collect()
}
