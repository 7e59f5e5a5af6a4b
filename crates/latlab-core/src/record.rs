//! The data of one run: what is written, read, merged and compared.

pub mod explained;

use self::explained::Explained;
use crate::cpulist::CpuList;
use crate::histogram::{DamagedHistogram, Histogram, Quantiles};
use crate::machine::Machine;
use crate::path::Path;
use crate::plan::Plan;
use crate::scan::Scan;
use crate::time::Nanos;
use crate::timeline::Timeline;
use serde::{Deserialize, Serialize};

/// The version of the record's format. A newer one is refused, never guessed at.
pub const SCHEMA: u32 = 1;

/// No probe has a shorter period.
const SHORTEST_INTERVAL: Nanos = Nanos::from_micros(1);

/// Everything one run found out, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// The writing program and its version.
    pub tool: String,
    /// When the run began, in nanoseconds since 1970; of merged runs, the first.
    pub started: Nanos,
    /// How many runs are merged in this record.
    pub runs: u64,
    /// What was asked.
    pub plan: Plan,
    /// SHA-256, in hexadecimal, of what it was measured with: this program and, of a guest, its
    /// kernel, its profile and QEMU. Of the same plan on another basis something else may come out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub basis: Option<String>,
    /// Where it ran.
    pub machine: Machine,
    /// The distributions.
    pub series: Vec<Series>,
    /// What scans found out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub scans: Vec<Scan>,
    /// Single values.
    pub figures: Vec<Figure>,
    /// The worst samples of all series, the worst first.
    pub worst: Vec<Sample>,
    /// What made wake-ups late, all of them together; absent where nothing was explained.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub explained: Option<Explained>,
    /// What the loads did.
    pub work: Vec<Work>,
    /// What was changed on the machine.
    pub changes: Vec<Change>,
    /// What the reader must know.
    pub warnings: Vec<Warning>,
}

/// The distribution of one latency on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The probe's name.
    pub probe: String,
    /// The two ends of the latency, in words.
    pub span: (String, String),
    /// The CPU it was measured on.
    pub cpu: u32,
    /// Where it was measured on several CPUs at once, as a throughput is: all of them; `cpu` is
    /// the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub together: Option<CpuList>,
    /// The loads that ran beside it.
    pub load: Vec<String>,
    /// The kernel profile, where a laboratory ran it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<String>,
    /// Policy, priority and slack that the measuring thread really had.
    pub schedule: Schedule,
    /// The period; absent where the probe has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval: Option<Nanos>,
    /// How many samples, and what became of the other periods.
    pub counts: Counts,
    /// The smallest sample.
    pub min: Nanos,
    /// The largest sample, exactly.
    pub max: Nanos,
    /// The mean.
    pub mean: Nanos,
    /// The standard deviation.
    pub stddev: Nanos,
    /// The sum of all samples, so that merging loses nothing.
    pub sum: u128,
    /// Quantiles of what was recorded.
    pub quantiles: Quantiles,
    /// Quantiles corrected for missed periods.
    pub corrected: Quantiles,
    /// The very first sample of the run, warm-up included: the coldest one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first: Option<Nanos>,
    /// The samples before counting began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warm_up: Option<WarmUp>,
    /// What disturbed the measuring thread while it counted.
    pub disturbed: Disturbed,
    /// CPU time that the measuring thread took while it counted: what measuring costs.
    pub cpu_ns: Nanos,
    /// The worst latency over time.
    pub timeline: Timeline,
    /// `HdrHistogram` V2, compressed, in base64.
    pub hdr: String,
}

/// The balance of a series: `recorded` + `missed` is the number of periods that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Samples in the histogram.
    pub recorded: u64,
    /// Periods that passed while a sample was late.
    pub missed: u64,
    /// Samples, among the recorded, that came before they were due; they count as 0.
    pub below_zero: u64,
}

/// How the measuring thread was scheduled, read back from the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// `fifo`, `rr`, `deadline` or `other`.
    pub policy: String,
    /// Real-time priority, 1 to 99; 0 for `other` and `deadline`.
    pub priority: u32,
    /// Timer slack: how late the kernel may be on purpose. Real-time tasks have none.
    pub slack: Nanos,
}

/// The samples of the warm-up, kept apart from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// How many.
    pub recorded: u64,
    /// Periods missed meanwhile.
    pub missed: u64,
    /// The largest: the cold maximum, real for some users.
    pub max: Nanos,
    /// Their sum.
    pub sum: u128,
}

/// What the measuring thread suffered that a clean run has none of, from `getrusage`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Context switches against its will.
    pub preempted: u64,
}

/// One value that is not a distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The probe's name.
    pub probe: String,
    /// What it is.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// The loads that ran beside it.
    pub load: Vec<String>,
    /// The kernel profile, where a laboratory ran it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub profile: Option<String>,
}

/// One late wake-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The probe's name.
    pub probe: String,
    /// The CPU.
    pub cpu: u32,
    /// When the thread ran, since counting began.
    pub at: Nanos,
    /// How late it was.
    pub latency: Nanos,
    /// The how manieth sample it is of all that lanes of this run took where they ran, from 1,
    /// warm-up included. It is the only one of that number where one CPU was measured on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nth: Option<u64>,
    /// What made it late, as far as it is known, in order of time.
    #[serde(default)]
    pub causes: Vec<Charge>,
    /// What no cause answers for; absent where nothing was explained. Causes and this make up the
    /// latency exactly.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unexplained: Option<Nanos>,
    /// What the CPU executed meanwhile, where the laboratory watched every instruction.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<Path>,
}

/// A part of a latency and what it is charged to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The cause's name.
    pub cause: String,
    /// When it begins, after the moment at which the thread should have run.
    #[serde(default)]
    pub from: Nanos,
    /// How much of the latency.
    pub ns: Nanos,
    /// The task, interrupt or softirq; empty where nobody is to blame.
    pub who: String,
    /// The kernel's functions, the innermost first, where they are known.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stack: Vec<String>,
}

/// What a load did from its start, which is before the first probe's, to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The load's name.
    pub load: String,
    /// What is counted.
    pub unit: String,
    /// How many of it.
    pub done: u64,
    /// CPU time it used, its children's included.
    pub cpu_ns: Nanos,
}

/// One change of the machine, and whether it was undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The knob's name.
    pub knob: String,
    /// Its value before.
    pub was: String,
    /// The value it was given.
    pub set: String,
    /// Why.
    pub because: String,
    /// Whether the old value is back.
    pub restored: bool,
}

/// Something the reader of a record must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A word for programs.
    pub code: String,
    /// A sentence for people.
    pub text: String,
}

impl Warning {
    /// A warning.
    pub fn new(code: &str, text: impl Into<String>) -> Warning {
        Warning { code: code.to_owned(), text: text.into() }
    }
}

/// Why a text is not a record.
#[derive(Debug, thiserror::Error)]
pub enum NotARecord {
    /// It ends too early.
    #[error("the record is cut short at line {line}, column {column}: was its disk full?")]
    CutShort {
        /// Where it ends.
        line: usize,
        /// Where in that line.
        column: usize,
    },
    /// It is something else.
    #[error("this is not a latlab record: {0}")]
    Foreign(String),
    /// It has the form of one, but can't be right.
    #[error("the record is damaged: {part}: {why}")]
    Damaged {
        /// Which series or scan, and on which CPU.
        part: String,
        /// What can't be.
        why: String,
    },
    /// A later latlab wrote it.
    #[error("the record has schema {0}, this latlab reads up to {SCHEMA}: use a newer latlab")]
    TooNew(u64),
}

/// Why two records must not be merged or compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// Nanoseconds of one are not nanoseconds of the other.
    #[error(
        "one record is in {0} time, the other in {1} time: their nanoseconds are not the same thing"
    )]
    TimeDomain(&'static str, &'static str),
    /// Only repetitions merge.
    #[error("their plans differ: only repetitions of the same plan merge")]
    Plan,
    /// Only runs of one kernel merge.
    #[error("their machines differ in {0}: only runs on the same kind of machine merge")]
    Machine(&'static str),
}

impl Series {
    /// The distribution; [`Record::from_json`] has made sure that it can be read.
    pub fn histogram(&self) -> Result<Histogram, DamagedHistogram> {
        Histogram::decode(&self.hdr, self.min, self.max, self.sum)
    }

    /// Puts a distribution in, with all that is derived from it.
    pub fn set_histogram(&mut self, histogram: &Histogram) {
        let corrected = self.interval.map(|interval| histogram.corrected(interval));
        self.min = histogram.min();
        self.max = histogram.max();
        self.mean = histogram.mean();
        self.stddev = histogram.stddev();
        self.sum = histogram.sum();
        self.quantiles = histogram.quantiles();
        self.corrected = corrected.as_ref().unwrap_or(histogram).quantiles();
        self.hdr = histogram.encode();
    }

    /// Whether a scan measured it: over moments that it chose, so that its distribution says as
    /// much about the choice as about the machine.
    pub fn is_of_scan(&self) -> bool {
        self.probe.starts_with("scan.")
    }

    /// The CPU, or the CPUs, that it was measured on, as they are shown.
    pub fn cpus(&self) -> String {
        self.together.as_ref().map_or_else(|| self.cpu.to_string(), CpuList::to_string)
    }

    /// Whether `other` is the same latency, measured under the same conditions.
    pub fn same_kind(&self, other: &Series) -> bool {
        let key = |s: &Series| {
            (s.probe.clone(), s.span.clone(), s.cpu, s.load.clone(), s.profile.clone(), s.interval)
        };
        let place = self.together == other.together;
        key(self) == key(other) && place && self.schedule == other.schedule
    }

    fn add(&mut self, other: &Series) -> Result<(), DamagedHistogram> {
        let mut histogram = self.histogram()?;
        histogram.add(&other.histogram()?);
        self.set_histogram(&histogram);
        self.counts = self.counts.add(other.counts);
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

    /// What can't be, if anything: a record is believed only when its parts agree.
    fn flaw(&self) -> Option<String> {
        let histogram = match self.histogram() {
            Ok(histogram) => histogram,
            Err(damaged) => return Some(damaged.to_string()),
        };
        if histogram.count() != self.counts.recorded {
            return Some(format!(
                "its histogram holds {} samples, {} were recorded",
                histogram.count(),
                self.counts.recorded
            ));
        }
        if self.min > self.max {
            return Some("its minimum is above its maximum".to_owned());
        }
        // Correcting for missed periods takes a step for each period of the longest latency.
        if self.interval.is_some_and(|interval| interval < SHORTEST_INTERVAL) {
            return Some("its interval is shorter than any that can be measured".to_owned());
        }
        (!self.timeline.is_sound()).then(|| "its timeline is not one".to_owned())
    }
}

// The sums saturate: a record that somebody made up must not end the program that reads it.

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

impl Record {
    /// Reads a record and makes sure that it is whole.
    pub fn from_json(text: &str) -> Result<Record, NotARecord> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| {
            if e.is_eof() && text.trim_start().starts_with('{') {
                NotARecord::CutShort { line: e.line(), column: e.column() }
            } else {
                NotARecord::Foreign(e.to_string())
            }
        })?;
        let schema = value.get("schema").and_then(serde_json::Value::as_u64);
        let schema = schema.ok_or_else(|| NotARecord::Foreign("it has no schema".to_owned()))?;
        if schema > u64::from(SCHEMA) {
            return Err(NotARecord::TooNew(schema));
        }
        if schema == 0 {
            return Err(NotARecord::Foreign("there is no schema 0".to_owned()));
        }
        // From the text again: only there does an error know its line.
        let record: Record =
            serde_json::from_str(text).map_err(|e| NotARecord::Foreign(e.to_string()))?;
        for (n, series) in record.series.iter().enumerate() {
            if let Some(why) = series.flaw() {
                let part = format!("series {n} ({} on CPU {})", series.probe, series.cpu);
                return Err(NotARecord::Damaged { part, why });
            }
        }
        for (n, scan) in record.scans.iter().enumerate() {
            if let Some(why) = scan.flaw() {
                let part = format!("scan {n} ({} on CPU {})", scan.call.name, scan.cpu);
                return Err(NotARecord::Damaged { part, why: why.to_owned() });
            }
        }
        for (n, sample) in record.worst.iter().enumerate() {
            if let Some(why) = sample.flaw() {
                let part = format!("worst {n} ({} on CPU {})", sample.probe, sample.cpu);
                return Err(NotARecord::Damaged { part, why: why.to_owned() });
            }
        }
        if let Some(why) = record.explained.as_ref().and_then(Explained::flaw) {
            let part = "what was explained".to_owned();
            return Err(NotARecord::Damaged { part, why: why.to_owned() });
        }
        Ok(record)
    }

    /// The record as the contract has it: JSON on lines of its own, with a last newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a record is plain data");
        text.push('\n');
        text
    }

    /// Whether nanoseconds mean the same in both.
    pub fn same_time(&self, other: &Record) -> Result<(), Incomparable> {
        let domains = (self.machine.time_domain, other.machine.time_domain);
        if domains.0 == domains.1 {
            return Ok(());
        }
        Err(Incomparable::TimeDomain(domains.0.word(), domains.1.word()))
    }

    /// Adds a repetition of the same plan on the same kind of machine. Associative, and every
    /// sample, figure, change and warning of both is in the result.
    pub fn merge(&mut self, other: &Record) -> Result<(), Incomparable> {
        self.same_time(other)?;
        if self.plan != other.plan {
            return Err(Incomparable::Plan);
        }
        self.same_kind_of_machine(other)?;
        if self.basis != other.basis {
            self.basis = None;
        }
        for (nth, theirs) in other.series.iter().enumerate() {
            // A plan may have a probe twice: the second goes to the second.
            let before = other.series[..nth].iter().filter(|s| s.same_kind(theirs)).count();
            match self.series.iter_mut().filter(|mine| mine.same_kind(theirs)).nth(before) {
                Some(mine) => mine.add(theirs).expect("a record's histograms were read before"),
                None => self.series.push(theirs.clone()),
            }
        }
        self.runs = self.runs.saturating_add(other.runs);
        self.started = self.started.min(other.started);
        self.scans.extend(other.scans.iter().cloned());
        self.figures.extend(other.figures.iter().cloned());
        self.worst.extend(other.worst.iter().cloned());
        worst_first(&mut self.worst);
        match (&mut self.explained, &other.explained) {
            (Some(mine), Some(theirs)) => mine.add(theirs),
            (mine @ None, theirs) => mine.clone_from(theirs),
            (Some(_), None) => {}
        }
        self.changes.extend(other.changes.iter().cloned());
        for (nth, theirs) in other.work.iter().enumerate() {
            let alike = |work: &&Work| work.load == theirs.load && work.unit == theirs.unit;
            let before = other.work[..nth].iter().filter(alike).count();
            let mine = self.work.iter_mut().filter(|mine| alike(&&**mine)).nth(before);
            match mine {
                Some(mine) => {
                    mine.done = mine.done.saturating_add(theirs.done);
                    mine.cpu_ns = mine.cpu_ns + theirs.cpu_ns;
                }
                None => self.work.push(theirs.clone()),
            }
        }
        for theirs in &other.warnings {
            if !self.warnings.contains(theirs) {
                self.warnings.push(theirs.clone());
            }
        }
        Ok(())
    }

    /// Whether `other` repeats this run, so that the two can be runs of one set: the same plan but
    /// for its seed, on the same kind of machine.
    pub fn is_repeated_by(&self, other: &Record) -> Result<(), Incomparable> {
        self.same_time(other)?;
        let same = Plan { seed: self.plan.seed, ..other.plan.clone() } == self.plan;
        if !same {
            return Err(Incomparable::Plan);
        }
        self.same_kind_of_machine(other)
    }

    fn same_kind_of_machine(&self, other: &Record) -> Result<(), Incomparable> {
        let (a, b) = (&self.machine, &other.machine);
        let same = [
            ("their kernel", a.kernel == b.kernel),
            ("their kernel's command line", a.cmdline == b.cmdline),
            ("their preemption model", a.preempt == b.preempt),
            ("their number of CPUs", a.cpus == b.cpus),
        ];
        match same.iter().find(|(_, same)| !same) {
            Some((what, _)) => Err(Incomparable::Machine(what)),
            None => Ok(()),
        }
    }
}

impl Sample {
    /// What can't be, if anything.
    fn flaw(&self) -> Option<&'static str> {
        let rest = self.unexplained.or_else(|| (!self.causes.is_empty()).then_some(Nanos(0)))?;
        let sum = self.causes.iter().fold(rest, |sum, charge| sum + charge.ns);
        (sum != self.latency).then_some("its causes and its remainder are not its latency")
    }
}

/// Sorts samples, the worst first and equals in order of time and CPU, and keeps the worst few.
pub fn worst_first(samples: &mut Vec<Sample>) {
    samples.sort_by(|a, b| {
        let key = |s: &Sample| (std::cmp::Reverse(s.latency), s.at, s.cpu);
        key(a).cmp(&key(b)).then_with(|| a.probe.cmp(&b.probe))
    });
    samples.truncate(crate::worst::KEPT);
}

#[cfg(test)]
pub(crate) mod tests;
