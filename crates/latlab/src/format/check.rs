//! The report of a check as text, and as test cases.

use super::printable;
use super::testcase::{TestCase, TestOutcome};
use latlab_core::check::{BreachReport, Frame, Level, RULES, Report, Rule, ThreadReport, Verdict};
use latlab_core::check::{Spread, WorstCycle};
use latlab_core::time::Nanos;
use std::fmt::Write as _;

/// Breaches that the verdict names.
const NAMED: usize = 3;
/// Functions of a stack that are shown.
const SHOWN: usize = 6;

/// Returns the report: the verdict, the breaches, then the cycles. `rules` are those that count; if
/// there are none, all errors do.
pub(crate) fn text(report: &Report, rules: &[Rule]) -> String {
    let mut text = verdict(report, rules) + "\n";
    for thread in &report.threads {
        let _ = write!(text, "\n{}\n", heading(thread));
        for breach in &thread.breaches {
            text += &describe(breach);
        }
        text += &cycle(thread);
    }
    if !report.without_cycle.is_empty() {
        let threads = printable(&report.without_cycle.join(", "));
        let _ = write!(text, "\nnot judged: real-time threads without a cycle: {threads}\n");
    }
    if !report.notes.is_empty() {
        text.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(text, "{}", printable(note));
    }
    text
}

/// The verdict in one line.
fn verdict(report: &Report, rules: &[Rule]) -> String {
    let failing: Vec<_> = report.failing(rules).collect();
    let cycles: u64 = report.threads.iter().map(|thread| thread.cycle.count).sum();
    if report.verdict(rules) == Verdict::RealTime {
        let all = report.threads.iter().map(|thread| thread.breaches.len()).sum::<usize>();
        let rest = match all {
            0 => String::new(),
            1 => ", 1 other finding".to_owned(),
            _ => format!(", {all} other findings"),
        };
        let what = if rules.is_empty() { "no breach" } else { "no breach of the given rules" };
        return format!("real-time: {what} in {}{rest}", counted(cycles, "cycle"));
    }
    let named = failing.iter().take(NAMED).map(|(_, breach)| printable(&short(breach)));
    let mut line = format!("NOT real-time: {}", named.collect::<Vec<_>>().join(", "));
    if failing.len() > NAMED {
        let _ = write!(line, ", and {} more", failing.len() - NAMED);
    }
    line
}

/// What and where: `100 page faults in touch_new_page (loop.c:6)`.
fn short(breach: &BreachReport) -> String {
    let what = match breach.rule {
        Rule::NotLocked | Rule::LockFuture | Rule::LazyBinding => breach.subject.clone(),
        _ => counted(breach.count, &breach.subject),
    };
    match &breach.place {
        Some(place) => format!("{what} in {place}"),
        None => what,
    }
}

/// Nouns with which subjects begin.
const NOUNS: [&str; 13] = [
    "cycle",
    "page fault",
    "major page fault",
    "call",
    "sleep",
    "relative sleep",
    "wait",
    "time",
    "wake-up",
    "preemption",
    "move",
    "missed period",
    "overrun",
];

/// A number with its noun, in the plural where it needs one.
fn counted(count: u64, subject: &str) -> String {
    let noun = NOUNS.into_iter().find(|noun| subject.starts_with(noun)).unwrap_or("interval");
    match subject.strip_prefix(noun) {
        Some(rest) if count != 1 => format!("{count} {noun}s{rest}"),
        _ => format!("{count} {subject}"),
    }
}

fn heading(thread: &ThreadReport) -> String {
    let cycle = &thread.cycle;
    let period = cycle.period.map(|period| format!(" of {period}")).unwrap_or_default();
    let (name, policy) = (printable(&thread.name), &thread.policy);
    format!("{name} [{}], {policy}: {}{period}", thread.tid, counted(cycle.count, "cycle"))
}

fn describe(breach: &BreachReport) -> String {
    let level = match breach.level {
        Level::Error => "error",
        Level::Warning => "warning",
    };
    let mut text = format!("  {level} {}: {}\n", breach.rule, printable(&short(breach)));
    if let Some(when) = moment(breach) {
        let _ = writeln!(text, "    {when}");
    }
    for frame in own_part(&breach.stack).iter().take(SHOWN) {
        let _ = writeln!(text, "      {}", printable(&frame.text()));
    }
    let _ = writeln!(text, "    {}", breach.rule.meaning());
    let _ = writeln!(text, "    {}", breach.rule.remedy());
    text
}

/// The stack without the functions that start every program and thread.
fn own_part(stack: &[Frame]) -> &[Frame] {
    let last = stack.iter().rposition(|frame| !frame.library && frame.function.is_some());
    let main = stack.iter().position(|frame| frame.function.as_deref() == Some("main"));
    main.or(last).map_or(stack, |last| &stack[..=last])
}

/// When in the cycle, how long, and by whom.
fn moment(breach: &BreachReport) -> Option<String> {
    let whole = [Rule::NotLocked, Rule::LockFuture, Rule::LazyBinding, Rule::Drift];
    if whole.contains(&breach.rule) {
        return None;
    }
    let mut parts = Vec::new();
    if breach.rule != Rule::WallClock && breach.rule != Rule::Waker {
        parts.push(format!("{} after the start of the cycle", breach.moment));
    }
    if breach.longest > Nanos(0) {
        parts.push(format!("the longest took {}", breach.longest));
    }
    if let Some(by) = &breach.by {
        parts.push(format!("by {}", printable(by)));
    }
    parts.push(match breach.first == breach.last {
        true => format!("in cycle {}", breach.first),
        false => format!("in cycles {} to {}", breach.first, breach.last),
    });
    Some(parts.join(", "))
}

/// The times of a thread's cycle.
fn cycle(thread: &ThreadReport) -> String {
    let cycle = &thread.cycle;
    let mut text = format!("  waits for {}\n", cycle.waits_for);
    let _ = writeln!(text, "  {:<14}{:>12}{:>12}{:>12}", "", "min", "median", "max");
    let rows =
        [("latency", cycle.latency), ("running", cycle.running), ("response", cycle.response)];
    for (name, Spread { min, median, max }) in rows {
        let [min, median, max] = [min, median, max].map(|time| time.to_string());
        let _ = writeln!(text, "  {name:<14}{min:>12}{median:>12}{max:>12}");
    }
    let deadline = match cycle.deadline {
        Some(deadline) => format!("deadline {deadline}"),
        None => "deadline: the next cycle".to_owned(),
    };
    let _ = writeln!(text, "  {deadline}, {} overruns", cycle.overruns);
    if let Some(worst) = &cycle.worst {
        text += &longest(worst);
    }
    text
}

/// The parts of the cycle with the longest response time.
fn longest(worst: &WorstCycle) -> String {
    let by = |who: &Option<String>, word: &str| match who {
        Some(who) => format!(" ({word} {})", printable(who)),
        None => String::new(),
    };
    let mut parts = vec![format!("{} until it ran", worst.latency)];
    parts.push(format!("{} running", worst.running));
    if worst.preempted > Nanos(0) {
        parts.push(format!("{} preempted{}", worst.preempted, by(&worst.preemptor, "by")));
    }
    if worst.blocked > Nanos(0) {
        parts.push(format!("{} asleep{}", worst.blocked, by(&worst.blocker, "in")));
    }
    if worst.faults > 0 {
        parts.push(counted(worst.faults, "page fault"));
    }
    format!("  longest cycle ({}): {}\n", worst.number, parts.join(", "))
}

/// One test case for each rule.
pub(crate) fn cases(report: &Report, rules: &[Rule]) -> Vec<TestCase> {
    let case = |rule: Rule| {
        let failing = report.failing(rules).filter(|(_, breach)| breach.rule == rule);
        let failing: Vec<String> = failing.map(|(_, breach)| short(breach)).collect();
        let outcome = match failing.as_slice() {
            [] => TestOutcome::Passed,
            _ => TestOutcome::Failed,
        };
        let cycles: u64 = report.threads.iter().map(|thread| thread.cycle.count).sum();
        let reason = match outcome {
            TestOutcome::Failed => failing.join("; "),
            _ => format!("no breach in {}", counted(cycles, "cycle")),
        };
        TestCase { name: rule.id().to_owned(), outcome, reason }
    };
    let all = if rules.is_empty() { &RULES[..] } else { rules };
    all.iter().map(|rule| case(*rule)).collect()
}
