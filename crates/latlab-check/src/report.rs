//! The report of a check.

use super::finding::Finding;
use super::rule::{Level, Rule};
use latlab_core::histogram::Histogram;
use latlab_core::time::Nanos;
use serde::{Deserialize, Serialize};

/// The report of a check. Its JSON form is documented in `docs/check.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The program and its arguments, or the process.
    pub program: String,
    /// The kernel's release.
    pub kernel: String,
    /// Threads with a cycle that are judged: real-time ones, unless the user wanted all.
    pub threads: Vec<ThreadReport>,
    /// What is wrong with threads as a whole, outside of cycles.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<Finding>,
    /// Threads without a cycle. They are not judged.
    pub without_cycle: Vec<String>,
    /// Threads whose cycles are all in the warm-up. They are not judged.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub in_warm_up: Vec<String>,
    /// Events that were received.
    #[serde(default)]
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// What this kernel does not report, and other limits of the check.
    pub notes: Vec<String>,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No breach of a rule, or warnings only.
    RealTime,
    /// Breaches.
    NotRealTime,
    /// No breach was seen, but too much was not seen.
    Undecided,
}

/// A thread with a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its name.
    pub name: String,
    /// Its ID.
    pub tid: u32,
    /// ID of its process.
    pub pid: u32,
    /// Its policy and priority.
    pub policy: String,
    /// Its cycle.
    pub cycle: CycleReport,
    /// Breaches, the worst first.
    pub breaches: Vec<BreachReport>,
}

/// The cycle of a thread. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleReport {
    /// What ends a cycle.
    pub waits_for: String,
    /// Number of complete cycles.
    pub count: u64,
    /// Median time from one cycle to the next, of the last 1000; none with a single cycle.
    pub period: Option<Nanos>,
    /// The deadline that the user gave.
    pub deadline: Option<Nanos>,
    /// Number of cycles that ended after their deadline, which is the next period by default.
    pub overruns: u64,
    /// Number of cycles that are left out, as the kernel did not report an event of theirs.
    #[serde(default)]
    pub left_out: u64,
    /// Number of cycles of the warm-up, which are not judged.
    #[serde(default)]
    pub warm_up: u64,
    /// Times for which something from outside stopped the thread.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stops: Option<StopsReport>,
    /// What took the time of the cycles that overran, the longest first.
    #[serde(default)]
    pub reasons: Vec<Reason>,
    /// From when a cycle was due until its wait returned; none where it is not known when it was due.
    pub latency: Option<Spread>,
    /// Time on the CPU.
    pub running: Spread,
    /// From when a cycle was due, or if that is not known from when it ran, until the next wait.
    pub response: Spread,
    /// Its parts, if the program has marks in its cycles.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parts: Option<PartsReport>,
    /// The cycle with the longest response time.
    pub worst: Option<WorstCycle>,
}

/// Times for which something from outside stopped a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopsReport {
    /// How often.
    pub count: u64,
    /// Their sum.
    pub total: Nanos,
    /// The longest.
    pub longest: Nanos,
    /// Who stopped it in the longest.
    pub by: String,
    /// Cycles that they delayed, which are not judged.
    pub cycles: u64,
}

/// The parts of cycles by the marks of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartsReport {
    /// The parts, in the order in which they first began.
    pub parts: Vec<PartReport>,
    /// Parts that had not ended when the part or the cycle around them did, and were ended there.
    pub without_end: u64,
    /// Marks that end a part which had not begun in the cycle.
    pub without_begin: u64,
    /// Parts that are left out: too deep, too many of a cycle, or of too many names.
    pub left_out: u64,
}

/// A part of cycles. Its time includes the parts within it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartReport {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// Time on the CPU.
    pub running: Spread,
    /// Its share of the running time of all cycles, in thousandths.
    pub share: u32,
    /// The number that the program gave the longest.
    pub id: i64,
}

/// Quantiles of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The shortest.
    pub min: Nanos,
    /// The median.
    pub median: Nanos,
    /// The longest.
    pub max: Nanos,
}

/// The longest cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstCycle {
    /// Its number, from 0.
    pub number: u64,
    /// From when it was due until it ran, if that is known.
    pub latency: Option<Nanos>,
    /// Time on the CPU.
    pub running: Nanos,
    /// From when it was due until the next wait.
    pub response: Nanos,
    /// Its parts. Their own times add up to the response time.
    #[serde(default)]
    pub parts: Vec<CyclePart>,
    /// Its parts by the marks of the program, in the order in which they ended.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub marked: Vec<MarkedPart>,
}

/// A part of a cycle by the marks of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedPart {
    /// Its name.
    pub name: String,
    /// The number that the program gave it.
    pub id: i64,
    /// When it began, from when the cycle was due.
    pub from: Nanos,
    /// From its begin to its end.
    pub length: Nanos,
    /// Time on the CPU.
    pub running: Nanos,
}

/// A part of a cycle. Its place in the cycle may contain other parts; their time is not its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CyclePart {
    /// When it began, from when the cycle was due.
    pub from: Nanos,
    /// From its begin to its end.
    pub length: Nanos,
    /// Its time without the parts within it.
    pub own: Nanos,
    /// The cause: before the thread ran, those of `latlab explain`, `previous-cycle` or
    /// `unexplained`; in the cycle `preempted`, `throttled`, `stopped`, `blocked`, `kernel-lock`, `fault`,
    /// `system-call`, `interrupt`, `softirq`, `program` or, where it contains page faults of unknown
    /// duration, `program-or-fault`.
    pub cause: String,
    /// Whether the thread was awaiting the CPU after it had slept.
    pub waking: bool,
    /// The task, interrupt, system call or lock.
    pub culprit: String,
    /// The kernel's function that delayed a waking, or the user's function in the cycle.
    pub place: Option<String>,
    /// The rule that it breached.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<Rule>,
}

/// What took the time of several cycles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// As in [`CyclePart`].
    pub cause: String,
    /// As in [`CyclePart`].
    pub waking: bool,
    /// As in [`CyclePart`].
    pub culprit: String,
    /// As in [`CyclePart`].
    pub place: Option<String>,
    /// Number of cycles in which it took time.
    pub count: u64,
    /// Sum of that time. For the program, the running time beyond the median of cycles in time.
    pub total: Nanos,
    /// The longest time in a cycle.
    pub longest: Nanos,
}

/// Breaches of a rule at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreachReport {
    /// The rule.
    pub rule: Rule,
    /// How serious it is here.
    pub level: Level,
    /// What breached it.
    pub subject: String,
    /// The user's function, with file and line if they are known.
    pub place: Option<String>,
    /// How often.
    pub count: u64,
    /// The part of the cycle in which it happened, by the marks of the program. For an overrun: the
    /// part that ran when the cycle had to end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<String>,
    /// Time of the first from the start of its cycle.
    pub moment: Nanos,
    /// Number of the first cycle with one, from 0.
    pub first: u64,
    /// Number of the last cycle with one.
    pub last: u64,
    /// Time that the longest took; 0 if unknown.
    pub longest: Nanos,
    /// The task that held the resource that the thread waited for, or that woke or replaced the
    /// thread.
    pub by: Option<String>,
    /// The stack, the innermost function first.
    pub stack: Vec<Frame>,
}

/// A function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Its name, if the file has symbols.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
    /// Name of the program or library.
    pub module: String,
    /// Offset in that file.
    pub offset: u64,
    /// Whether it is in a shared library of the system, or code of a library that the program contains,
    /// such as the templates of C++'s standard library.
    pub library: bool,
}

/// The policies of threads that are not real-time.
const ORDINARY_POLICIES: [&str; 4] = ["SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE", "SCHED_EXT"];
/// Names that are written out of a list.
const NAMED: usize = 5;

/// The first of some names, and the number of others.
pub fn some_of(names: &[String]) -> String {
    let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

impl Report {
    /// All breaches, each with its thread.
    pub fn breaches(&self) -> impl Iterator<Item = (&ThreadReport, &BreachReport)> {
        { &self.threads }.iter().flat_map(|thread| thread.breaches.iter().map(move |b| (thread, b)))
    }

    /// The breaches that count: those of `rules` or, without it, all errors.
    pub fn failing<'a>(
        &'a self,
        rules: &'a [Rule],
    ) -> impl Iterator<Item = (&'a ThreadReport, &'a BreachReport)> {
        self.breaches().filter(move |(_, breach)| counts(rules, breach.rule, breach.level))
    }

    /// The same of the findings about threads as a whole.
    pub fn failing_findings<'a>(&'a self, rules: &'a [Rule]) -> impl Iterator<Item = &'a Finding> {
        self.findings.iter().filter(move |one| counts(rules, one.rule, one.level))
    }

    /// The verdict by `rules` or, without any, by all errors.
    pub fn verdict(&self, rules: &[Rule]) -> Verdict {
        let fails = self.failing(rules).next().is_some();
        match fails || self.failing_findings(rules).next().is_some() {
            true => Verdict::NotRealTime,
            false if self.unseen().next().is_some() => Verdict::Undecided,
            false => Verdict::RealTime,
        }
    }

    /// The gaps of the check that are large enough to hide breaches, a sentence each.
    pub fn unseen(&self) -> impl Iterator<Item = String> {
        let events = self.events.saturating_add(self.lost);
        let lost = (self.lost > events / LOST)
            .then(|| format!("{} of {events} events were lost", self.lost));
        let threads = self.threads.iter().filter_map(|thread| {
            let CycleReport { count, left_out, .. } = thread.cycle;
            let (name, tid, all) = (&thread.name, thread.tid, count.saturating_add(left_out));
            (left_out > all / LEFT_OUT)
                .then(|| format!("{left_out} of {all} cycles of {name} [{tid}] are left out"))
        });
        lost.into_iter().chain(threads)
    }
}

/// A check is not decided if more than this part of the events is lost, a hundredth, or more than this part
/// of a thread's cycles is left out, a tenth.
const LOST: u64 = 100;
const LEFT_OUT: u64 = 10;

/// Whether a breach counts: its rule is one of these or, without any, it is an error.
fn counts(rules: &[Rule], rule: Rule, level: Level) -> bool {
    if rules.is_empty() { level == Level::Error } else { rules.contains(&rule) }
}

impl BreachReport {
    /// What it means, in one sentence.
    pub fn meaning(&self) -> &'static str {
        self.rule.meaning_and_remedy(&self.subject).0
    }

    /// What to do, in one sentence.
    pub fn remedy(&self) -> &'static str {
        self.rule.meaning_and_remedy(&self.subject).1
    }
}

impl ThreadReport {
    /// Whether it has a real-time policy.
    pub fn is_realtime(&self) -> bool {
        !ORDINARY_POLICIES.contains(&self.policy.as_str())
    }
}

impl CyclePart {
    /// The part alone as a reason.
    pub fn reason(&self) -> Reason {
        let (cause, culprit, place) =
            (self.cause.clone(), self.culprit.clone(), self.place.clone());
        let (waking, own) = (self.waking, self.own);
        Reason { cause, waking, culprit, place, count: 1, total: own, longest: own }
    }
}

impl Spread {
    pub(super) fn of(all: &Histogram) -> Spread {
        Spread { min: all.min(), median: all.quantile(0.5), max: all.max() }
    }
}

impl Frame {
    /// `function (file:line)`, or what is known of it.
    pub fn text(&self) -> String {
        let function = match &self.function {
            Some(name) => name.clone(),
            None => return format!("{}+{:#x}", self.module, self.offset),
        };
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{function} ({file}:{line})"),
            _ => format!("{function} ({})", self.module),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_of_names_has_an_end() {
        let of =
            |count: usize| some_of(&(0..count).map(|nth| format!("t{nth}")).collect::<Vec<_>>());
        assert_eq!(of(2), "t0, t1");
        assert_eq!(of(5), "t0, t1, t2, t3, t4");
        assert_eq!(of(100), "t0, t1, t2, t3, t4 and 95 more");
    }
}
