//! The report of a check as text, and as test cases.

mod fold;
mod verdict;

use fold::{Group, groups};
pub use verdict::{line, verdict};

use super::printable;
use super::testcase::{TestCase, TestOutcome};
use latlab_check::{
    BreachReport, Finding, Frame, Level, RULES, Report, Rule, ThreadReport, Verdict,
};
use latlab_check::{CycleReport, PartsReport, Reason, Spread, StopsReport, WorstCycle, some_of};
use latlab_core::time::Nanos;
use std::fmt::Write as _;

/// Lines about overruns and stops that follow the verdict.
const LEADING: usize = 5;
/// Functions of a stack that are shown. If the user's is not among them, half of them, and as many from it on.
const SHOWN: usize = 6;
/// Causes of overruns that are shown, and parts of the longest cycle.
const REASONS: usize = 5;

/// Returns the report: the verdict, the breaches, then the cycles. `rules` are those that count; if
/// there are none, all errors do.
pub fn text(report: &Report, rules: &[Rule]) -> String {
    let mut text = verdict(report, rules) + "\n";
    let groups = groups(&report.threads);
    let lines: Vec<String> = groups.iter().flat_map(|group| leading(group.worst)).collect();
    text.extend(lines.iter().take(LEADING).map(|line| format!("{line}\n")));
    if lines.len() > LEADING {
        let _ = writeln!(text, "and {} more threads with overruns or stops", lines.len() - LEADING);
    }
    for finding in &report.findings {
        text += "\n";
        text += &verdict::describe(finding);
    }
    for Group { worst: thread, others } in &groups {
        let _ = write!(text, "\n{}\n", heading(thread));
        text += &fold::others(others).map_or(String::new(), |line| format!("  {line}\n"));
        for breach in &thread.breaches {
            text += &describe(breach);
        }
        text += &cycle(thread);
    }
    if !report.without_cycle.is_empty() {
        let threads = printable(&some_of(&report.without_cycle));
        let _ = write!(text, "\nnot judged: threads without a cycle: {threads}\n");
    }
    if !report.in_warm_up.is_empty() {
        let threads = printable(&some_of(&report.in_warm_up));
        let _ = write!(text, "\nnot judged: all cycles are in the warm-up: {threads}\n");
    }
    if !report.notes.is_empty() {
        text.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(text, "{}", printable(note));
    }
    text
}

/// What and where: `100 page faults in touch_new_page (loop.c:6)`.
pub fn short(breach: &BreachReport) -> String {
    let what = match breach.rule {
        Rule::NotLocked | Rule::LockFuture | Rule::LazyBinding => breach.subject.clone(),
        _ => counted(breach.count, &breach.subject),
    };
    let what = match &breach.place {
        Some(place) => format!("{what} in {place}"),
        None => what,
    };
    match &breach.part {
        Some(part) => format!("{what}, in part {}", part_name(part)),
        None => what,
    }
}

/// Nouns with which subjects begin.
const NOUNS: [&str; 18] = [
    "time-out",
    "stop",
    "cycle",
    "page fault",
    "major page fault",
    "protection fault",
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
    "warning",
    "other finding",
];

/// A number with its noun, in the plural where it needs one.
fn counted(count: u64, subject: &str) -> String {
    let noun = NOUNS.into_iter().find(|noun| subject.starts_with(noun)).unwrap_or("interval");
    match subject.strip_prefix(noun) {
        Some(rest) if count != 1 => format!("{count} {noun}s{rest}"),
        _ => format!("{count} {subject}"),
    }
}

/// The line that names a thread.
pub fn heading(thread: &ThreadReport) -> String {
    let cycle = &thread.cycle;
    let period = cycle.period.map(|period| format!(" of {period}")).unwrap_or_default();
    let (name, policy) = (printable(&thread.name), &thread.policy);
    format!("{name} [{}], {policy}: {}{period}", thread.tid, counted(cycle.count, "cycle"))
}

/// The word for a level.
pub fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
    }
}

fn describe(breach: &BreachReport) -> String {
    let (level, what) = (level(breach.level), printable(&short(breach)));
    let mut text = format!("  {level} {}: {what}\n", breach.rule);
    if let Some(when) = moment(breach) {
        let _ = writeln!(text, "    {when}");
    }
    for line in stack(&breach.stack, breach.place.as_deref()) {
        let _ = writeln!(text, "      {line}");
    }
    let _ = writeln!(text, "    {}", breach.meaning());
    let _ = writeln!(text, "    {}", breach.remedy());
    text
}

/// The innermost functions of a breach's stack. The function of the user's that it is charged to is always
/// among them.
fn stack(stack: &[Frame], place: Option<&str>) -> Vec<String> {
    let stack = own_part(stack);
    let lines = |frames: &[Frame]| -> Vec<String> {
        frames.iter().take(SHOWN).map(|frame| printable(&frame.text())).collect()
    };
    let place = stack.iter().position(|frame| Some(frame.text().as_str()) == place);
    let Some(place) = place.filter(|place| *place >= SHOWN) else { return lines(stack) };
    let half = SHOWN / 2;
    let mut shown = lines(&stack[..half]);
    shown.push(format!("... {} more functions of libraries", place - half));
    shown.extend(lines(&stack[place..]).into_iter().take(half));
    shown
}

/// The stack without the functions that start every program and thread.
pub fn own_part(stack: &[Frame]) -> &[Frame] {
    let last = stack.iter().rposition(|frame| !frame.library && frame.function.is_some());
    let main = stack.iter().position(|frame| frame.function.as_deref() == Some("main"));
    main.or(last).map_or(stack, |last| &stack[..=last])
}

/// When in the cycle, how long, and by whom.
fn moment(breach: &BreachReport) -> Option<String> {
    let whole = [Rule::NotLocked, Rule::LockFuture, Rule::LazyBinding, Rule::Drift, Rule::Stopped];
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
    parts.push(if breach.first == breach.last {
        format!("in cycle {}", breach.first)
    } else {
        format!("in cycles {} to {}", breach.first, breach.last)
    });
    Some(parts.join(", "))
}

/// The times of a thread's cycle.
fn cycle(thread: &ThreadReport) -> String {
    let cycle = &thread.cycle;
    let mut text = format!("  waits for {}\n", cycle.waits_for);
    let _ = writeln!(text, "  {:<14}{:>12}{:>12}{:>12}", "", "min", "median", "max");
    for (name, times) in times(cycle) {
        let [min, median, max] = match times {
            Some(Spread { min, median, max }) => [min, median, max].map(|time| time.to_string()),
            None => ["unknown"; 3].map(str::to_owned),
        };
        let _ = writeln!(text, "  {name:<14}{min:>12}{median:>12}{max:>12}");
    }
    let deadline = match cycle.deadline {
        Some(deadline) => format!("deadline {deadline}"),
        None => "deadline: the next cycle".to_owned(),
    };
    let _ = writeln!(text, "  {deadline}, {}", counted(cycle.overruns, "overrun"));
    text += &stops(cycle).map_or(String::new(), |line| format!("  {}\n", printable(&line)));
    text += &warm_up(cycle).map_or(String::new(), |line| format!("  {line}\n"));
    text += &why(cycle);
    text += &cycle.parts.as_ref().map(parts).unwrap_or_default();
    if let Some(worst) = &cycle.worst {
        text += &longest(worst);
    }
    text
}

/// The cycles of the warm-up, if there are any.
pub fn warm_up(cycle: &CycleReport) -> Option<String> {
    let count = cycle.warm_up;
    (count > 0).then(|| format!("without {} of warm-up", counted(count, "cycle")))
}

/// The times of a cycle with their names, where they are known.
pub fn times(cycle: &CycleReport) -> [(&'static str, Option<Spread>); 3] {
    [
        ("latency", cycle.latency),
        ("running", Some(cycle.running)),
        ("response", Some(cycle.response)),
    ]
}

/// For how long the thread was stopped, if it was.
pub fn stops(cycle: &CycleReport) -> Option<String> {
    let StopsReport { count, total, longest, by, cycles } = cycle.stops.as_ref()?;
    let whole = match count {
        1 => format!("stopped for {longest} by {by}"),
        _ => format!("stopped {count} times, for {total} in all and at most {longest} by {by}"),
    };
    Some(format!("{whole}: {} that this delayed are not judged", counted(*cycles, "cycle")))
}

/// The parts of a cycle by the marks of the program.
fn parts(report: &PartsReport) -> String {
    let names = report.parts.iter().map(|part| part_name(&part.name));
    let width = names.clone().map(|name| name.chars().count()).max().unwrap_or(0).max(14);
    let mut text = String::new();
    if !report.parts.is_empty() {
        let _ = writeln!(
            text,
            "  {:<width$}{:>12}{:>12}{:>12}{:>8}{:>10}  longest",
            "part, running", "min", "median", "max", "share", "count"
        );
    }
    for (part, name) in report.parts.iter().zip(names) {
        let Spread { min, median, max } = part.running;
        let [min, median, max] = [min, median, max].map(|time| time.to_string());
        let (share, count, id) = (percent(part.share), part.count, part.id);
        let _ = writeln!(
            text,
            "  {name:<width$}{min:>12}{median:>12}{max:>12}{share:>8}{count:>10}  id {id}"
        );
    }
    for problem in problems(report) {
        let _ = writeln!(text, "  {problem}");
    }
    text
}

/// The name of a part by the marks of the program.
pub fn part_name(name: &str) -> String {
    printable(if name.is_empty() { "(name not in memory)" } else { name })
}

/// A share in thousandths, in percent.
pub fn percent(share: u32) -> String {
    format!("{}.{} %", share / 10, share % 10)
}

/// What is wrong with the marks of a thread, a sentence each.
pub fn problems(report: &PartsReport) -> Vec<String> {
    let PartsReport { without_end, without_begin, left_out, .. } = *report;
    let all = [
        (
            without_end,
            "parts did not end in their cycle, or in the part around them, and were ended there",
        ),
        (without_begin, "marks end a part that had not begun in the cycle"),
        (
            left_out,
            "parts are left out: more than 1000 in a cycle, 16 within one another, or 64 names",
        ),
    ];
    let there = all.into_iter().filter(|(count, _)| *count > 0);
    there.map(|(count, what)| format!("marks: {count} {what}")).collect()
}

/// The cycles of all threads.
fn cycles(report: &Report) -> u64 {
    report.threads.iter().map(|thread| thread.cycle.count).fold(0, u64::saturating_add)
}

/// What stopped a thread, and the leading cause of its overruns, a line each.
pub fn leading(thread: &ThreadReport) -> Vec<String> {
    let (cycle, name) = (&thread.cycle, printable(&thread.name));
    let stopped = stops(cycle).map(|stopped| format!("{name}: {}", printable(&stopped)));
    stopped.into_iter().chain(overran(cycle, &name)).collect()
}

fn overran(cycle: &CycleReport, name: &str) -> Option<String> {
    let first = causes(cycle).next()?;
    let all = counted(cycle.count, "cycle");
    let why = format!("{} {}", share(first, cycle), printable(&cause(first)));
    Some(format!("{name}: {} in {all}: {why}", counted(cycle.overruns, "overrun")))
}

/// What took the time of the cycles that overran.
fn why(cycle: &CycleReport) -> String {
    let mut text = String::new();
    for reason in causes(cycle).take(REASONS) {
        let share = share(reason, cycle);
        let longest = format!("at most {} in a cycle", reason.longest);
        let _ = writeln!(text, "    {share:>5} {}, {longest}", printable(&cause(reason)));
    }
    for late in cycle.reasons.iter().filter(|reason| is_inherited(reason)) {
        let begun = counted(late.count, "overrun");
        let _ = writeln!(text, "    {begun} began late because the cycle before had not ended");
    }
    text
}

/// The causes of overruns, the longest first. A cycle that begins late because the one before had
/// not ended has no cause of its own.
pub fn causes(cycle: &CycleReport) -> impl Iterator<Item = &Reason> {
    cycle.reasons.iter().filter(|reason| !is_inherited(reason))
}

fn is_inherited(reason: &Reason) -> bool {
    reason.cause == "previous-cycle"
}

/// The share of a cause in percent of all.
pub fn share(reason: &Reason, cycle: &CycleReport) -> String {
    let whole: u128 = causes(cycle).map(|one| u128::from(one.total.0)).sum();
    match (u128::from(reason.total.0) * 100).checked_div(whole) {
        None | Some(0) => "< 1 %".to_owned(),
        Some(percent) => format!("{percent} %"),
    }
}

/// A cause in the user's words.
pub fn cause(reason: &Reason) -> String {
    let Reason { cause, culprit, place, waking, .. } = reason;
    let what = match (cause.as_str(), waking) {
        ("stopped", _) => format!("stopped by {culprit}"),
        ("previous-cycle", _) => "the cycle before had not ended".to_owned(),
        ("unexplained", _) => "unexplained before it ran".to_owned(),
        ("program", _) => "the program itself".to_owned(),
        ("program-or-fault", _) => "the program and its page faults of unknown duration".to_owned(),
        ("preempted", _) => format!("preempted by {culprit}"),
        ("throttled", _) => format!("throttled, while {culprit} ran"),
        ("blocked", _) if is_lock(culprit) => format!("waiting for {culprit}"),
        ("blocked", _) => format!("asleep in {culprit}"),
        ("kernel-lock", _) => format!("asleep on {culprit}"),
        ("fault" | "system-call", _) => culprit.clone(),
        (_, false) => format!("{cause} in the cycle: {culprit}"),
        (_, true) if culprit.is_empty() => format!("{cause} before it ran"),
        (_, true) => format!("{cause} before it ran: {culprit}"),
    };
    match place {
        Some(place) => format!("{what} in {place}"),
        None => what,
    }
}

/// Whether a culprit is a lock, for which the thread also runs while it waits.
fn is_lock(culprit: &str) -> bool {
    ["a mutex ", "a read-write lock"].iter().any(|lock| culprit.starts_with(lock))
}

/// The parts of the cycle with the longest response time.
fn longest(worst: &WorstCycle) -> String {
    let mut parts: Vec<(String, Nanos)> = Vec::new();
    for part in &worst.parts {
        let what = printable(&cause(&part.reason()));
        match parts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, time)) => *time = *time + part.own,
            None => parts.push((what, part.own)),
        }
    }
    parts.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let parts = parts.iter().take(REASONS).map(|(what, time)| format!("{time} {what}"));
    let parts: Vec<String> = parts.collect();
    format!("  longest cycle ({}), {}: {}\n", worst.number, worst.response, parts.join(", "))
}

/// One test case for each rule.
pub fn cases(report: &Report, rules: &[Rule]) -> Vec<TestCase> {
    let case = |rule: Rule| {
        let is_it = |(_, breach): &(&ThreadReport, &BreachReport)| breach.rule == rule;
        let of_thread = |finding: &&Finding| finding.rule == rule;
        let in_cycles = report.breaches().filter(is_it).map(|(_, breach)| short(breach));
        let whole = report.findings.iter().filter(of_thread).map(line);
        let breaches: Vec<String> = whole.chain(in_cycles).collect();
        let failed = report.failing(rules).any(|one| is_it(&one))
            || report.failing_findings(rules).any(|one| one.rule == rule);
        let cycles = cycles(report);
        let reason = match (breaches.as_slice(), failed) {
            ([], _) => format!("no breach in {}", counted(cycles, "cycle")),
            (some, true) => some.join("; "),
            (some, false) => format!("warning only: {}", some.join("; ")),
        };
        let outcome = match report.verdict(rules) {
            _ if failed => TestOutcome::Failed,
            Verdict::Undecided => TestOutcome::Skipped,
            _ => TestOutcome::Passed,
        };
        TestCase { name: rule.id().to_owned(), outcome, reason }
    };
    let all = if rules.is_empty() { &RULES[..] } else { rules };
    all.iter().map(|rule| case(*rule)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shown stack of a breach, with this many library functions above the user's function.
    fn shown(of_libraries: usize) -> Vec<String> {
        let frame = |function: &str, library| Frame {
            function: Some(function.to_owned()),
            module: "loop".to_owned(),
            library,
            ..Frame::default()
        };
        let mut stack: Vec<Frame> =
            (0..of_libraries).map(|nth| frame(&format!("std::f{nth}"), true)).collect();
        stack.extend(["log_state", "update", "main", "start"].map(|name| frame(name, false)));
        super::stack(&stack, Some("log_state (loop)"))
    }

    #[test]
    fn function_of_the_user_is_shown_however_deep_libraries_are() {
        let few = shown(2);
        assert_eq!(few, ["std::f0", "std::f1", "log_state", "update", "main"].map(in_loop));
        let many = shown(9);
        let middle = "... 6 more functions of libraries".to_owned();
        let mut expected = ["std::f0", "std::f1", "std::f2"].map(in_loop).to_vec();
        expected.push(middle);
        expected.extend(["log_state", "update", "main"].map(in_loop));
        assert_eq!(many, expected);
    }

    fn in_loop(function: &str) -> String {
        format!("{function} (loop)")
    }
}
