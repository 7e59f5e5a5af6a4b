//! The report of a check.

use super::breach::{Breach, Held};
use super::cycle::Finished;
use super::event::{StackId, Thread};
use super::marks::Ended;
use super::place::place;
use super::reason::{CyclePart, PlaceOf, Reason, parts, reasons};
use super::rule::{Level, RULES, Rule};
use super::thread::Cyclic;
use crate::histogram::Histogram;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The report of a check. Its JSON form is documented in `docs/check.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The program and its arguments, or the process.
    pub program: String,
    /// The kernel's release.
    pub kernel: String,
    /// Real-time threads with a cycle.
    pub threads: Vec<ThreadReport>,
    /// Real-time threads without a cycle, which are not judged.
    pub without_cycle: Vec<String>,
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
    /// Median time from one cycle to the next; none with a single cycle.
    pub period: Option<Nanos>,
    /// The deadline that the user gave.
    pub deadline: Option<Nanos>,
    /// Number of cycles that ended after their deadline, which is the next period by default.
    pub overruns: u64,
    /// Number of cycles that are left out, as the kernel did not report an event of theirs.
    #[serde(default)]
    pub left_out: u64,
    /// What took the time of the cycles that overran, the longest first.
    #[serde(default)]
    pub reasons: Vec<Reason>,
    /// From when a cycle was due until its wait returned.
    pub latency: Spread,
    /// Time on the CPU.
    pub running: Spread,
    /// From when a cycle was due until the next wait.
    pub response: Spread,
    /// Its parts, if the program has marks in its cycles.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parts: Option<PartsReport>,
    /// The cycle with the longest response time.
    pub worst: Option<WorstCycle>,
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

/// A part of cycles. One that contains others includes their time.
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
    /// From when it was due until it ran.
    pub latency: Nanos,
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
    /// The part of the cycle in which it happened, by the marks of the program; of an overrun, the one
    /// that ran when the cycle had to end.
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
    /// The task that held what the thread waited for, or woke or replaced it.
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
    /// Whether it is in a shared library of the system, or in Rust's standard library.
    pub library: bool,
}

impl Report {
    /// The breaches that count: those of `rules` or, without it, all errors.
    pub fn failing<'a>(
        &'a self,
        rules: &'a [Rule],
    ) -> impl Iterator<Item = (&'a ThreadReport, &'a BreachReport)> {
        let all =
            self.threads.iter().flat_map(|thread| thread.breaches.iter().map(move |b| (thread, b)));
        all.filter(move |(_, breach)| match rules {
            [] => breach.level == Level::Error,
            rules => rules.contains(&breach.rule),
        })
    }

    /// The verdict by `rules` or, without any, by all errors.
    pub fn verdict(&self, rules: &[Rule]) -> Verdict {
        match self.failing(rules).next() {
            None => Verdict::RealTime,
            Some(_) => Verdict::NotRealTime,
        }
    }
}

impl ThreadReport {
    pub(super) fn of(
        cyclic: Cyclic,
        deadline: Option<Nanos>,
        frames: &mut dyn FnMut(u32, StackId) -> Vec<Frame>,
    ) -> ThreadReport {
        let thread = cyclic.thread;
        let mut place_of = |stack| place(&frames(thread.pid, stack));
        let cycle = CycleReport::of(&cyclic, deadline, &mut place_of);
        let mut breaches: Vec<BreachReport> = Vec::new();
        for breach in cyclic.breaches.take() {
            let stack = breach.stack.map(|stack| frames(thread.pid, stack)).unwrap_or_default();
            if is_of_watching(&breach, &stack) {
                continue;
            }
            let new = BreachReport::of(breach, stack, deadline.is_some());
            let same = |b: &&mut BreachReport| {
                b.rule == new.rule
                    && b.subject == new.subject
                    && (&b.place, &b.part) == (&new.place, &new.part)
            };
            match breaches.iter_mut().find(same) {
                Some(known) => known.merge(new),
                None => breaches.push(new),
            }
        }
        let rank = |rule| RULES.iter().position(|known| *known == rule);
        breaches.sort_by_key(|b| (b.level, rank(b.rule), u64::MAX - b.count));
        ThreadReport {
            name: thread.comm.to_string(),
            tid: thread.tid,
            pid: thread.pid,
            policy: policy(&thread),
            cycle,
            breaches,
        }
    }
}

/// Whether watching caused a page fault: the first one in the page into which the kernel copies the
/// instructions of marks, on kernels and processors that can't emulate a NOP.
fn is_of_watching(breach: &Breach, stack: &[Frame]) -> bool {
    breach.rule == Rule::Fault && stack.first().is_some_and(|frame| frame.module == "[uprobes]")
}

impl CycleReport {
    fn of(cyclic: &Cyclic, deadline: Option<Nanos>, place_of: &mut PlaceOf<'_>) -> CycleReport {
        let usual = cyclic.in_time.quantile(0.5);
        CycleReport {
            waits_for: cyclic.wait.words().to_owned(),
            count: cyclic.cycles,
            period: cyclic.periods.median(),
            deadline,
            overruns: cyclic.overruns,
            left_out: cyclic.left_out,
            reasons: reasons(&cyclic.overran, usual, place_of),
            latency: Spread::of(&cyclic.latency),
            running: Spread::of(&cyclic.running),
            response: Spread::of(&cyclic.response),
            parts: cyclic.parts.report(cyclic.running.sum()),
            worst: cyclic.worst.as_ref().map(|worst| WorstCycle::of(worst, place_of)),
        }
    }
}

impl Spread {
    pub(super) fn of(all: &Histogram) -> Spread {
        Spread { min: all.min(), median: all.quantile(0.5), max: all.max() }
    }
}

impl WorstCycle {
    fn of(worst: &Finished, place_of: &mut PlaceOf<'_>) -> WorstCycle {
        WorstCycle {
            number: worst.number,
            latency: worst.latency(),
            running: worst.running(),
            response: worst.response(),
            parts: parts(worst, place_of),
            marked: worst.cycle.marks.ended.iter().map(|one| one.report(worst.cycle.due)).collect(),
        }
    }
}

impl Ended {
    fn report(&self, due: Nanos) -> MarkedPart {
        MarkedPart {
            name: self.name.clone(),
            id: self.id,
            from: self.from - due,
            length: self.to - self.from,
            running: self.running,
        }
    }
}

impl BreachReport {
    fn of(breach: Breach, stack: Vec<Frame>, has_deadline: bool) -> BreachReport {
        let level = match breach.rule {
            Rule::Overrun if has_deadline => Level::Error,
            rule => rule.level(),
        };
        BreachReport {
            rule: breach.rule,
            level,
            subject: breach.subject,
            place: place(&stack),
            count: breach.count,
            part: breach.part,
            moment: breach.moment,
            first: breach.first,
            last: breach.last,
            longest: breach.longest,
            by: breach.held.map(describe),
            stack,
        }
    }

    fn merge(&mut self, other: BreachReport) {
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        if other.longest > self.longest {
            (self.longest, self.by) = (other.longest, other.by);
        }
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

pub(super) fn describe(held: Held) -> String {
    format!("{} [{}, {}]", held.comm, held.tid, priority(held.prio))
}

/// A priority of the kernel in the user's numbers.
fn priority(prio: i16) -> String {
    match prio {
        ..0 => "SCHED_DEADLINE".to_owned(),
        0..100 => format!("priority {}", 99 - prio),
        _ => "SCHED_OTHER".to_owned(),
    }
}

fn policy(thread: &Thread) -> String {
    match thread.policy {
        1 => format!("SCHED_FIFO {}", 99 - thread.prio),
        2 => format!("SCHED_RR {}", 99 - thread.prio),
        _ => priority(thread.prio),
    }
}
