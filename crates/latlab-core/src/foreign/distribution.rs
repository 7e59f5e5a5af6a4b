//! A distribution as another tool wrote it, made a series; and a record of such series.

use super::ForeignError;
use crate::cpulist::CpuList;
use crate::histogram::Histogram;
use crate::machine::Machine;
use crate::plan::{Length, Plan};
use crate::record::{Beyond, Counts, Figure, Record, Schedule, Series, Warning, WarningCode};
use crate::time::Nanos;
use std::collections::BTreeMap;

/// A distribution with buckets of equal width.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    /// The name of the probe of latlab that measures the same, else of the tool.
    pub(super) probe: &'static str,
    /// Begin and end of the latency.
    pub(super) span: (&'static str, &'static str),
    pub(super) cpu: u32,
    /// Samples by the begin of their bucket.
    pub(super) buckets: BTreeMap<Nanos, u64>,
    /// Width of a bucket.
    pub(super) width: Nanos,
    /// Samples above the tool's range, which ends there or later.
    pub(super) beyond: (Nanos, u64),
    pub(super) min: Option<Nanos>,
    pub(super) max: Option<Nanos>,
    /// The period, where it is known.
    pub(super) interval: Option<Nanos>,
    /// Periods that pass in the whole time that was asked for, where that is known.
    pub(super) periods: Option<u64>,
    /// Policy and priority, where they are known.
    pub(super) schedule: Option<(String, u32)>,
}

impl Distribution {
    pub(super) fn recorded(&self) -> u64 {
        self.buckets.values().fold(self.beyond.1, |sum, count| sum.saturating_add(*count))
    }

    /// The shortest that the samples above the range can be, and their number.
    fn bound(&self) -> (Nanos, u64) {
        let (limit, count) = self.beyond;
        let is_below = self.buckets.values().any(|count| *count > 0);
        (if is_below { limit } else { limit.max(self.min.unwrap_or(limit)) }, count)
    }

    /// The samples above the range are at their shortest, but for the maximum.
    fn histogram(&self) -> Histogram {
        let (limit, count) = self.bound();
        let top = self.max.filter(|max| count > 0 && *max > limit);
        let at_end = count - u64::from(top.is_some());
        let beyond = [(limit, at_end), (top.unwrap_or(limit), u64::from(top.is_some()))];
        let all = self.buckets.iter().map(|(from, count)| (*from, *count)).chain(beyond);
        let all: Vec<(u64, u64)> =
            all.filter(|(_, count)| *count > 0).map(|(from, count)| (from.0, count)).collect();
        let sum = all.iter().map(|(from, count)| u128::from(*from) * u128::from(*count)).sum();
        let first = all.first().map_or(Nanos(0), |(from, _)| Nanos(*from));
        let last = all.last().map_or(Nanos(0), |(from, _)| Nanos(*from));
        let (min, max) = (self.min.unwrap_or(first), self.max.unwrap_or(last));
        Histogram::from_parts(all.into_iter(), min, max, sum)
    }

    /// Periods without a sample, where they are known: where most periods have none, the run ended early.
    fn missed(&self) -> Option<u64> {
        let (periods, recorded) = (self.periods?, self.recorded());
        (recorded >= periods - periods / 10).then(|| periods.saturating_sub(recorded))
    }

    /// Which of its minimum and maximum is in no bucket: then lines are missing.
    fn lacks(&self, histogram: &Histogram) -> Option<&'static str> {
        let is_there = |value: Nanos| {
            histogram.buckets().any(|bucket| (bucket.from..bucket.to).contains(&value))
        };
        let unit = |value: Nanos| Nanos(value.0 / self.width.0.max(1) * self.width.0.max(1));
        let has = |value: Option<Nanos>| {
            value.is_none_or(|value| is_there(value) || is_there(unit(value)))
        };
        if has(self.min) { (!has(self.max)).then_some("maximum") } else { Some("minimum") }
    }

    /// Adds the samples of another thread of the same CPU.
    fn add(&mut self, other: &Distribution) {
        for (from, count) in &other.buckets {
            let sum = self.buckets.entry(*from).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.beyond =
            (self.beyond.0.min(other.beyond.0), self.beyond.1.saturating_add(other.beyond.1));
        self.min = self.min.zip(other.min).map(|(a, b)| a.min(b));
        self.max = self.max.zip(other.max).map(|(a, b)| a.max(b));
        self.periods = self.periods.zip(other.periods).map(|(a, b)| a.saturating_add(b));
    }

    /// The series of this distribution.
    fn series(&self, histogram: &Histogram) -> Series {
        let (policy, priority) = self.schedule.clone().unwrap_or_else(|| (UNKNOWN.to_owned(), 0));
        let missed = self.missed();
        let (limit, count) = self.bound();
        let mut series = Series {
            probe: self.probe.to_owned(),
            span: (self.span.0.to_owned(), self.span.1.to_owned()),
            cpu: self.cpu,
            load: vec![UNKNOWN.to_owned()],
            schedule: Schedule { policy, priority, slack: Nanos(0) },
            interval: self.interval.filter(|_| missed.is_some()),
            counts: Counts {
                recorded: self.recorded(),
                missed: missed.unwrap_or(0),
                below_zero: 0,
            },
            beyond: (count > 0).then_some(Beyond { limit, count }),
            ..Series::default()
        };
        series.set_histogram(histogram);
        series
    }
}

/// The policy of threads whose policy a file does not say, and the load: none says it.
const UNKNOWN: &str = "unknown";

/// The span of cyclictest and of the probe `cyclic`.
pub(super) const WAKE_UP: (&str, &str) = ("timer expiry", "thread running");

/// What a file says about its run.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    /// The tool and, where it is known, its version.
    pub(super) tool: String,
    /// The release of the kernel, where it is known.
    pub(super) kernel: Option<String>,
    /// The duration, where it is known.
    pub(super) duration: Option<Nanos>,
    /// What the values are rounded down to, in words.
    pub(super) rounded: String,
    /// Whether the CPUs are known: otherwise threads are numbered.
    pub(super) has_cpus: bool,
    /// Sentences about what the file shows.
    pub(super) remarks: Vec<String>,
}

/// A single value of a run whose load nobody knows.
pub(super) fn figure(probe: &str, name: String, value: f64, unit: &str) -> Figure {
    let load = vec![UNKNOWN.to_owned()];
    Figure { probe: probe.to_owned(), name, value, unit: unit.to_owned(), load, profile: None }
}

/// More samples than any run has.
const MOST: u64 = 1 << 53;

/// The record of these distributions and figures. Fails where they have more samples than any run.
pub(super) fn record(
    tool: &'static str,
    origin: &Origin,
    distributions: Vec<Distribution>,
    figures: Vec<Figure>,
) -> Result<Record, ForeignError> {
    let mut all: Vec<Distribution> = Vec::new();
    for one in distributions.into_iter().filter(|one| one.recorded() > 0) {
        let key = |of: &Distribution| (of.probe, of.span, of.cpu, of.interval);
        match all.iter_mut().find(|known| key(known) == key(&one)) {
            Some(known) => known.add(&one),
            None => all.push(one),
        }
    }
    if all.iter().any(|one| one.recorded() > MOST) {
        return Err(ForeignError::whole(tool, "it has more samples than any run takes"));
    }
    let cpus: CpuList = all.iter().map(|one| one.cpu).collect();
    let length = match (origin.duration, all.iter().map(Distribution::recorded).max()) {
        (Some(duration), _) => Length::For(duration),
        (None, recorded) => Length::Count(recorded.unwrap_or(0)),
    };
    let plan = Plan::bare(&origin.tool, cpus.clone(), length);
    let machine =
        Machine { kernel: origin.kernel.clone().unwrap_or_default(), cpus, ..Machine::default() };
    let mut record = Record::new(&origin.tool, Nanos(0), plan, machine);
    let histograms: Vec<Histogram> = all.iter().map(Distribution::histogram).collect();
    let each = || all.iter().zip(&histograms);
    record.series = each().map(|(one, histogram)| one.series(histogram)).collect();
    record.figures = figures;
    let lacking = each().find_map(|(one, histogram)| one.lacks(histogram));
    let lacking = lacking.map(|what| {
        format!("a {what} is in none of the buckets: lines are missing, and quantiles are wrong")
    });
    let early = all.iter().any(|one| one.periods.is_some() && one.missed().is_none());
    let early = early.then(|| {
        "more than a tenth of the periods of the whole duration have no sample: the run ended early, \
         and missed periods are not known"
            .to_owned()
    });
    let remarks = [unknown(origin, &all)].into_iter().chain(lacking).chain(early);
    let remarks = remarks.chain(origin.remarks.iter().cloned());
    record.warnings = beyond(&record.series);
    record.warnings.extend(remarks.map(|text| Warning::new(WarningCode::OtherTool, text)));
    Ok(record)
}

/// What the values are, and what the file does not say.
fn unknown(origin: &Origin, distributions: &[Distribution]) -> String {
    let lack = |known: fn(&Distribution) -> bool| {
        distributions.is_empty() || !distributions.iter().all(known)
    };
    let has_periods = |one: &Distribution| one.missed().is_some() || one.probe != "cyclic";
    let unknown = [
        ("the machine", true),
        ("its kernel", origin.kernel.is_none()),
        ("CPUs, for which threads are numbered", !origin.has_cpus),
        ("the load", true),
        ("policy and priority", lack(|one| one.schedule.is_some())),
        ("missed periods", lack(has_periods)),
        ("when each sample was taken", true),
    ];
    let unknown = unknown.iter().filter(|(_, is_unknown)| *is_unknown).map(|(what, _)| *what);
    let unknown = unknown.collect::<Vec<_>>().join(", ");
    let (tool, rounded) = (&origin.tool, &origin.rounded);
    format!("measured by {tool}: values are rounded down to {rounded}; not known: {unknown}")
}

/// The warnings about samples above the range of the tool, one for each limit.
fn beyond(series: &[Series]) -> Vec<Warning> {
    let mut by_limit: BTreeMap<Nanos, (u64, u64)> = BTreeMap::new();
    for one in series {
        if let Some(Beyond { limit, count }) = one.beyond {
            let all = by_limit.entry(limit).or_default();
            *all = (all.0.saturating_add(count), all.1.saturating_add(one.counts.recorded));
        }
    }
    let warning = |(limit, (count, recorded)): (Nanos, (u64, u64))| {
        let text = format!(
            "{count} of {recorded} samples are above the range of the histogram. They are counted at {limit}, the \
             shortest that they can be: a quantile that is shown as at least that may be anything up to the maximum"
        );
        Warning::new(WarningCode::AboveRange, text)
    };
    by_limit.into_iter().map(warning).collect()
}
