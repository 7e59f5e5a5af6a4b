//! The verdict on a measurement: its worst sample against the median, and what to do next.

use crate::histogram::Histogram;
use crate::record::{Record, Sample, Series, WarningCode};
use crate::time::Nanos;

/// What to do after a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Explain the worst samples: measure the same with `latlab explain`.
    Explain,
    /// Look for settings that increase latency: `latlab doctor`.
    Doctor,
    /// Measure under another load, or on another kernel, and compare: no sample stands out.
    Compare,
    /// Nothing: the record is explained, or has no samples.
    Nothing,
}

/// A worst sample stands out from this multiple of the median on.
const STANDS_OUT: f64 = 2.0;

/// Returns the worst sample of a record in a sentence: its latency, where and when it was taken,
/// and how it compares with the median. None for a record without samples.
pub fn worst(record: &Record) -> Option<String> {
    let worst = record.worst.first()?;
    let cpus = record.cpus_of(worst).in_words();
    let run = if record.runs > 1 { " of its run" } else { "" };
    let against = ratio(record, worst).map_or(String::new(), |(ratio, median)| {
        let digits = usize::from(ratio < 10.0);
        format!(", {ratio:.digits$} times the median ({median})")
    });
    Some(format!(
        "Worst sample: {}{against}, of {} on {cpus}, {} after the start{run}.",
        worst.latency, worst.probe, worst.at
    ))
}

/// Returns what to do after a measurement.
pub fn next(record: &Record) -> Next {
    let Some(worst) = record.worst.first() else { return Next::Nothing };
    let stands_out = ratio(record, worst).is_none_or(|(ratio, _)| ratio >= STANDS_OUT);
    let unfit = record.warnings.iter().any(|warning| warning.code == WarningCode::Machine);
    match worst.index {
        _ if record.explained.is_some() || worst.path.is_some() => Next::Nothing,
        _ if !stands_out => Next::Compare,
        Some(_) => Next::Explain,
        // Samples of other processes can't be explained.
        None if unfit => Next::Doctor,
        None => Next::Compare,
    }
}

/// Returns how many times the median a sample is, and the median over all CPUs.
#[expect(clippy::cast_precision_loss, reason = "a ratio has three digits")]
fn ratio(record: &Record, worst: &Sample) -> Option<(f64, Nanos)> {
    let mut all = Histogram::new();
    for series in alike(record, worst) {
        all.add(&series.histogram().ok()?);
    }
    let median = all.quantile(0.5);
    (median > Nanos(0)).then(|| (worst.latency.0 as f64 / median.0 as f64, median))
}

/// Returns the series that a sample may come from: those of its probe's first latency.
fn alike<'a>(record: &'a Record, worst: &Sample) -> Vec<&'a Series> {
    let of_probe = || record.series.iter().filter(|series| series.probe == worst.probe);
    let first = of_probe().next();
    of_probe().filter(|series| first.is_some_and(|first| first.span == series.span)).collect()
}
