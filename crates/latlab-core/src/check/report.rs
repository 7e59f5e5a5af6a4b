//! The report of a check.

use super::breach::{Breach, Held};
use super::cycle::Finished;
use super::event::{StackId, Thread};
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
    /// The cycle with the longest response time.
    pub worst: Option<WorstCycle>,
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
    /// Whether it is in a shared library of the system.
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
            let new = BreachReport::of(breach, stack, deadline.is_some());
            let same = |b: &&mut BreachReport| {
                b.rule == new.rule && b.subject == new.subject && b.place == new.place
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
            worst: cyclic.worst.as_ref().map(|worst| WorstCycle::of(worst, place_of)),
        }
    }
}

impl Spread {
    fn of(all: &Histogram) -> Spread {
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

/// The innermost function of the program itself, otherwise of a library. One whose source line is known
/// comes first, as a program that is linked statically contains the C library; then one with a name.
fn place(stack: &[Frame]) -> Option<String> {
    let named = |frame: &&Frame| frame.function.is_some();
    let with_line = |frame: &&Frame| named(frame) && frame.line.is_some();
    let mut own = stack.iter().filter(|frame| !frame.library);
    let found = own.clone().find(with_line).or_else(|| own.clone().find(named));
    let found = found.or_else(|| own.next());
    found.or_else(|| stack.iter().find(named)).or(stack.first()).map(Frame::text)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: Option<u32>, library: bool) -> Frame {
        let file = line.map(|_| "loop.c".to_owned());
        let module = "loop".to_owned();
        Frame { function: Some(function.to_owned()), file, line, module, library, offset: 16 }
    }

    #[test]
    fn place_is_the_innermost_function_with_a_line_before_those_of_the_c_library() {
        let (wait, main) =
            (frame("wait_for_time", Some(189), false), frame("main", Some(9), false));
        let dynamic = [frame("sem_wait", None, true), wait.clone(), main.clone()];
        assert_eq!(place(&dynamic).as_deref(), Some("wait_for_time (loop.c:189)"));
        let linked_statically = [frame("sem_wait", None, false), wait, main];
        assert_eq!(place(&linked_statically).as_deref(), Some("wait_for_time (loop.c:189)"));
        let without_lines = [frame("wait", None, false), frame("main", None, false)];
        assert_eq!(place(&without_lines).as_deref(), Some("wait (loop)"));
        let library = [frame("sem_wait", None, true)];
        assert_eq!(place(&library).as_deref(), Some("sem_wait (loop)"));
        assert_eq!(place(&[]), None);
    }
}
