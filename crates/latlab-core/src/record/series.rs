//! The distribution of one latency on one CPU.

use crate::cpulist::CpuList;
use crate::histogram::{Bucket, DamagedHistogram, Histogram, Quantiles};
use crate::time::Nanos;
use crate::timeline::Timeline;
use serde::{Deserialize, Serialize};

/// The shortest period of any probe.
const SHORTEST_INTERVAL: Nanos = Nanos::from_micros(1);

/// The most steps of correcting a distribution, which take seconds. An hour without the CPU at a
/// period of 10 us takes a third.
const MOST_STEPS: u64 = 1_000_000_000;

/// The distribution of one latency on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The probe's name.
    pub probe: String,
    /// Beginning and end of the latency, in words.
    pub span: (String, String),
    /// The CPU it was measured on.
    pub cpu: u32,
    /// All CPUs, where several were measured together, as for a throughput; `cpu` is the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub together: Option<CpuList>,
    /// The loads that ran at the same time.
    pub load: Vec<String>,
    /// The kernel profile, if it ran in the laboratory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<String>,
    /// Effective policy, priority and timer slack of the measuring thread.
    pub schedule: Schedule,
    /// The period; absent for probes without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval: Option<Nanos>,
    /// Numbers of samples and of missed periods.
    pub counts: Counts,
    /// Samples above the range of the tool that measured them; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub beyond: Option<Beyond>,
    /// The minimum.
    pub min: Nanos,
    /// The exact maximum.
    pub max: Nanos,
    /// The mean.
    pub mean: Nanos,
    /// The standard deviation.
    pub stddev: Nanos,
    /// The sum of all samples, so that merging is exact.
    pub sum: u128,
    /// Quantiles of the recorded samples.
    pub quantiles: Quantiles,
    /// Quantiles corrected for missed periods.
    pub corrected: Quantiles,
    /// The very first sample of the run, warm-up included; it has the coldest caches.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first: Option<Nanos>,
    /// The samples before counting began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warm_up: Option<WarmUp>,
    /// Disturbances of the measuring thread while it counted.
    pub disturbed: Disturbed,
    /// CPU time of the measuring thread while it counted: the cost of measuring.
    pub cpu_ns: Nanos,
    /// The worst latency over time.
    pub timeline: Timeline,
    /// `HdrHistogram` V2, compressed, in base64.
    pub hdr: String,
}

/// Sample counts of a series: `recorded` + `missed` is the number of periods that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Samples in the histogram.
    pub recorded: u64,
    /// Periods that passed without a sample of their own.
    pub missed: u64,
    /// Recorded samples that came early, before the timer expired; they count as 0.
    pub below_zero: u64,
}

/// Samples above the range of the tool that measured them. They are in the distribution at the end of the range, but
/// for the maximum, which is known: a quantile from there on is at least the end of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beyond {
    /// End of the range.
    pub limit: Nanos,
    /// Number of samples.
    pub count: u64,
}

/// Scheduling of the measuring thread, read back from the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// `fifo`, `rr`, `deadline` or `other`.
    pub policy: String,
    /// Real-time priority, 1 to 99; 0 for `other` and `deadline`.
    pub priority: u32,
    /// Timer slack: the delay of timers that the kernel is permitted. 0 for real-time tasks.
    pub slack: Nanos,
}

/// The samples of the warm-up, which are not part of the distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Number of samples.
    pub recorded: u64,
    /// Number of missed periods.
    pub missed: u64,
    /// The maximum, with cold caches.
    pub max: Nanos,
    /// The sum.
    pub sum: u128,
}

/// Disturbances of the measuring thread, from `getrusage`; all are 0 in a clean run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Involuntary context switches.
    pub preempted: u64,
}

impl Series {
    /// Decodes the distribution; it is valid in a record that [`super::Record::from_json`]
    /// accepted.
    pub fn histogram(&self) -> Result<Histogram, DamagedHistogram> {
        Histogram::decode(&self.hdr, self.min, self.max, self.sum)
    }

    /// Sets the distribution and all values derived from it and from the counts.
    pub fn set_histogram(&mut self, histogram: &Histogram) {
        self.derive(histogram);
        self.hdr = histogram.encode();
    }

    /// Sets all values derived from the distribution and from the counts.
    fn derive(&mut self, histogram: &Histogram) {
        let missed = self.counts.missed > 0;
        let interval = self.interval.filter(|_| missed);
        let corrected = interval.map(|interval| histogram.corrected(interval));
        self.min = histogram.min();
        self.max = histogram.max();
        self.mean = histogram.mean();
        self.stddev = histogram.stddev();
        self.sum = histogram.sum();
        self.quantiles = histogram.quantiles();
        self.corrected = corrected.as_ref().unwrap_or(histogram).quantiles();
    }

    /// Whether a quantile of this value is only known to be at least as long, as samples are above the range of the
    /// tool that measured them.
    pub fn is_at_least(&self, quantile: Nanos) -> bool {
        self.beyond.is_some_and(|beyond| quantile >= beyond.limit)
    }

    /// Whether it comes from a scan, which chooses its moments: its distribution depends on that
    /// choice as much as on the machine.
    pub fn is_of_scan(&self) -> bool {
        self.probe.starts_with("scan.")
    }

    /// Returns the CPU, or the CPUs, that it was measured on.
    pub fn cpus(&self) -> CpuList {
        self.together.clone().unwrap_or_else(|| CpuList::from_iter([self.cpu]))
    }

    /// Whether `other` is the same latency, measured on the same CPUs under the same conditions.
    pub fn same_kind(&self, other: &Series) -> bool {
        let cpus = |s: &Series| (s.cpu, s.together.clone());
        self.same_conditions(other) && cpus(self) == cpus(other)
    }

    /// Whether `other` is the same latency, measured on any CPUs under the same conditions.
    pub fn same_conditions(&self, other: &Series) -> bool {
        let key = |s: &Series| {
            (s.probe.clone(), s.span.clone(), s.load.clone(), s.profile.clone(), s.interval)
        };
        key(self) == key(other) && self.schedule == other.schedule
    }

    /// Adds the samples of another run.
    pub(super) fn add(&mut self, other: &Series) -> Result<(), DamagedHistogram> {
        let mut histogram = self.histogram()?;
        histogram.add(&other.histogram()?);
        self.counts = self.counts.add(other.counts);
        let limit = |one: &Series| one.beyond.map(|beyond| beyond.limit);
        let limit = [limit(self), limit(other)].into_iter().flatten().min();
        self.beyond = limit.map(|limit| Beyond { limit, count: histogram.count_from(limit) });
        self.set_histogram(&histogram);
        self.disturbed = self.disturbed.add(other.disturbed);
        self.cpu_ns = self.cpu_ns + other.cpu_ns;
        self.first = self.first.max(other.first);
        self.warm_up = match (self.warm_up, other.warm_up) {
            (Some(a), Some(b)) => Some(a.add(b)),
            (a, b) => a.or(b),
        };
        self.timeline.merge(&other.timeline);
        Ok(())
    }

    /// Returns an inconsistency, if there is one: a record is accepted only if its parts agree. A
    /// series that takes more than `steps_left` steps to correct for missed periods is not
    /// recomputed. The steps taken are subtracted from `steps_left`.
    pub(super) fn flaw(&self, steps_left: &mut u64) -> Option<String> {
        let histogram = match self.histogram() {
            Ok(histogram) => histogram,
            Err(damaged) => return Some(damaged.to_string()),
        };
        if histogram.count() != self.counts.recorded {
            return Some(format!(
                "its histogram has {} samples, but {} were recorded",
                histogram.count(),
                self.counts.recorded
            ));
        }
        let beyond = self.beyond.map(|beyond| (beyond.count, histogram.count_from(beyond.limit)));
        if let Some((stated, counted)) = beyond.filter(|(stated, counted)| stated > counted) {
            return Some(format!(
                "{stated} samples are said to be above its range, and {counted} are"
            ));
        }
        if self.min > self.max {
            return Some("its minimum is above its maximum".to_owned());
        }
        if self.interval.is_some_and(|interval| interval < SHORTEST_INTERVAL) {
            return Some(format!("its interval is shorter than {SHORTEST_INTERVAL}"));
        }
        let steps = self.interval.map_or(0, |interval| steps(&histogram, interval));
        if steps > MOST_STEPS {
            return Some(format!(
                "correcting it for missed periods takes more than {MOST_STEPS} steps"
            ));
        }
        let may_correct = self.counts.missed == 0 || steps <= *steps_left;
        if may_correct && self.counts.missed > 0 {
            *steps_left -= steps;
        }
        self.disagreement(&histogram, may_correct).map(str::to_owned)
    }

    /// Returns which of its values can't be true, if one can't. Values corrected for missed periods are
    /// only recomputed if they `may_correct`.
    fn disagreement(&self, histogram: &Histogram, may_correct: bool) -> Option<&'static str> {
        if !histogram.is_sound() {
            return Some("its minimum, its maximum or its sum is not that of its histogram");
        }
        let interval = self.interval.filter(|_| may_correct);
        let mut derived = Series { interval, counts: self.counts, ..Series::default() };
        derived.derive(histogram);
        let values = |one: &Series| (one.min, one.max, one.mean, one.quantiles);
        // Floating-point numbers are not rounded alike by all processors.
        let rounded = Nanos(1 + derived.stddev.0 / 1_000_000);
        if values(self) != values(&derived) || self.stddev.0.abs_diff(derived.stddev.0) > rounded.0
        {
            return Some("its mean, its deviation or its quantiles are not those of its histogram");
        }
        if may_correct && self.corrected != derived.corrected {
            return Some("its corrected quantiles are not those of its histogram");
        }
        if self.counts.below_zero > self.counts.recorded {
            return Some("more samples came early than were recorded");
        }
        let period = self.interval.unwrap_or(SHORTEST_INTERVAL);
        if self.counts.missed.checked_mul(period.0).is_none() {
            return Some("it missed more periods than pass in 500 years");
        }
        if !self.timeline.is_sound() {
            return Some("its time line is inconsistent");
        }
        (self.timeline.max() > self.max).then_some("its time line is above its maximum")
    }
}

/// Returns the steps of correcting for missed periods: one for each period of each bucket.
fn steps(histogram: &Histogram, interval: Nanos) -> u64 {
    let of = |bucket: Bucket| bucket.from.0 / interval.0.max(1);
    histogram.buckets().map(of).fold(0, u64::saturating_add)
}

// Sums saturate, so that a forged record cannot end the program that reads it.

impl Counts {
    fn add(self, other: Counts) -> Counts {
        Counts {
            recorded: self.recorded.saturating_add(other.recorded),
            missed: self.missed.saturating_add(other.missed),
            below_zero: self.below_zero.saturating_add(other.below_zero),
        }
    }
}

impl Disturbed {
    fn add(self, other: Disturbed) -> Disturbed {
        Disturbed {
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
            major_faults: self.major_faults.saturating_add(other.major_faults),
            preempted: self.preempted.saturating_add(other.preempted),
        }
    }
}

impl WarmUp {
    fn add(self, other: WarmUp) -> WarmUp {
        WarmUp {
            recorded: self.recorded.saturating_add(other.recorded),
            missed: self.missed.saturating_add(other.missed),
            max: self.max.max(other.max),
            sum: self.sum.saturating_add(other.sum),
        }
    }
}
