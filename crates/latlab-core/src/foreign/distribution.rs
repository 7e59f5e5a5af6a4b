//! A distribution as another tool wrote it, made a series; and a record of such series.

use crate::cpulist::CpuList;
use crate::histogram::Histogram;
use crate::machine::Machine;
use crate::plan::{Length, Plan};
use crate::record::{Beyond, Counts, Record, Schedule, Series, Warning, WarningCode};
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
    /// Samples above the tool's range, which ends there.
    pub(super) beyond: (Nanos, u64),
    pub(super) min: Option<Nanos>,
    pub(super) max: Option<Nanos>,
    /// The period, where it is known.
    pub(super) interval: Option<Nanos>,
    /// Periods that passed, where they are known.
    pub(super) periods: Option<u64>,
    /// Policy and priority, where they are known.
    pub(super) schedule: Option<(String, u32)>,
}

impl Distribution {
    fn recorded(&self) -> u64 {
        self.buckets.values().fold(self.beyond.1, |sum, count| sum.saturating_add(*count))
    }

    /// The samples above the range are at its end, but for the maximum.
    fn histogram(&self) -> Histogram {
        let (limit, count) = self.beyond;
        let top = self.max.filter(|max| count > 0 && *max > limit);
        let at_end = count - u64::from(top.is_some());
        let beyond = [(limit, at_end), (top.unwrap_or(limit), u64::from(top.is_some()))];
        let all = self.buckets.iter().map(|(from, count)| (*from, *count)).chain(beyond);
        let all: Vec<(u64, u64)> =
            all.filter(|(_, count)| *count > 0).map(|(from, count)| (from.0, count)).collect();
        let sum = all.iter().map(|(from, count)| u128::from(*from) * u128::from(*count)).sum();
        let first = all.first().map_or(Nanos(0), |(from, _)| Nanos(*from));
        let last = all.last().map_or(Nanos(0), |(from, _)| Nanos(*from));
        Histogram::from_parts(
            all.into_iter(),
            self.min.unwrap_or(first),
            self.max.unwrap_or(last),
            sum,
        )
    }

    /// The series of this distribution.
    pub(super) fn series(&self) -> Series {
        let (policy, priority) = self.schedule.clone().unwrap_or_else(|| (UNKNOWN.to_owned(), 0));
        let recorded = self.recorded();
        let missed = self.periods.map_or(0, |periods| periods.saturating_sub(recorded));
        let (limit, count) = self.beyond;
        let mut series = Series {
            probe: self.probe.to_owned(),
            span: (self.span.0.to_owned(), self.span.1.to_owned()),
            cpu: self.cpu,
            schedule: Schedule { policy, priority, slack: Nanos(0) },
            interval: self.interval.filter(|_| self.periods.is_some()),
            counts: Counts { recorded, missed, below_zero: 0 },
            beyond: (count > 0).then_some(Beyond { limit, count }),
            ..Series::default()
        };
        series.set_histogram(&self.histogram());
        series
    }
}

/// The policy of threads whose policy a file does not say.
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
    /// Start of the run in nanoseconds since 1970, where it is known.
    pub(super) started: Option<Nanos>,
    /// The resolution of the values.
    pub(super) resolution: Nanos,
    /// Sentences about what the file shows.
    pub(super) remarks: Vec<String>,
}

/// The record of these distributions.
pub(super) fn record(origin: &Origin, distributions: &[Distribution]) -> Record {
    let cpus: CpuList = distributions.iter().map(|one| one.cpu).collect();
    let length = match (origin.duration, distributions.iter().map(Distribution::recorded).max()) {
        (Some(duration), _) => Length::For(duration),
        (None, recorded) => Length::Count(recorded.unwrap_or(0)),
    };
    let plan = Plan::bare(&origin.tool, cpus.clone(), length);
    let machine =
        Machine { kernel: origin.kernel.clone().unwrap_or_default(), cpus, ..Machine::default() };
    let mut record = Record::new(&origin.tool, origin.started.unwrap_or(Nanos(0)), plan, machine);
    record.series = distributions.iter().map(Distribution::series).collect();
    record.warnings.push(Warning::new(WarningCode::OtherTool, unknown(origin, distributions)));
    record.warnings.extend(beyond(&record.series));
    let remarks = origin.remarks.iter().map(|text| Warning::new(WarningCode::OtherTool, text));
    record.warnings.extend(remarks);
    record
}

/// What the values are, and what the file does not say.
fn unknown(origin: &Origin, distributions: &[Distribution]) -> String {
    let has_none = |known: fn(&Distribution) -> bool| !distributions.iter().all(known);
    let unknown = [
        ("the machine", true),
        ("its kernel", origin.kernel.is_none()),
        ("policy and priority", has_none(|one| one.schedule.is_some())),
        ("missed periods", has_none(|one| one.periods.is_some())),
        ("when each sample was taken", true),
    ];
    let unknown = unknown.iter().filter(|(_, is_unknown)| *is_unknown).map(|(what, _)| *what);
    format!(
        "measured by {}: values are rounded down to {}; not known: {}",
        origin.tool,
        origin.resolution,
        unknown.collect::<Vec<_>>().join(", ")
    )
}

/// The warnings about samples above the range of the tool, one for each limit and span.
fn beyond(series: &[Series]) -> Vec<Warning> {
    let mut by_limit: BTreeMap<Nanos, (u64, u64)> = BTreeMap::new();
    for one in series {
        if let Some(Beyond { limit, count }) = one.beyond {
            let all = by_limit.entry(limit).or_default();
            *all = (all.0 + count, all.1 + one.counts.recorded);
        }
    }
    let warning = |(limit, (count, recorded)): (Nanos, (u64, u64))| {
        let text = format!(
            "{count} of {recorded} samples are above the range of {limit}, which is where they are counted: \
             quantiles that are shown as at least {limit} may be anything up to the maximum"
        );
        Warning::new(WarningCode::AboveRange, text)
    };
    by_limit.into_iter().map(warning).collect()
}
