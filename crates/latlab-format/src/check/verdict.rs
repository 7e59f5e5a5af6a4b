//! The verdict of a check in one line, and what is wrong with threads as a whole.

use super::{counted, cycles, groups, level, short, stack};
use crate::printable;
use latlab_check::{BreachReport, Finding, Level, Margin, Report, Rule, ThreadReport, Verdict};
use std::fmt::Write as _;

/// Breaches that the verdict names.
const NAMED: usize = 3;

/// The verdict in one line.
pub fn verdict(report: &Report, rules: &[Rule]) -> String {
    match report.verdict(rules) {
        Verdict::RealTime => passed(report, rules.is_empty()),
        Verdict::NotRealTime => failed(report, rules),
        Verdict::Undecided => undecided(report),
    }
}

fn passed(report: &Report, by_errors: bool) -> String {
    let breaches = report.breaches().count() + report.findings.len();
    let (what, other) = if by_errors {
        ("no error", "warning")
    } else {
        ("no breach of the given rules", "other finding")
    };
    let rest = match breaches as u64 {
        0 => String::new(),
        all => format!(", {}", counted(all, other)),
    };
    let margin = margin(report).map_or(String::new(), |margin| format!("; {margin}"));
    let is_realtime = report.threads.iter().all(ThreadReport::is_realtime);
    let lead = if is_realtime { "real-time: " } else { "" };
    format!("{lead}{what} in {}{rest}{margin}", counted(cycles(report), "cycle"))
}

/// How much of its budget the longest cycle took, and how many later ones may exceed it.
fn margin(report: &Report) -> Option<String> {
    let (thread, Margin { worst, budget, cycles, over, one_in, .. }) = Margin::least(report)?;
    let of = match report.threads.len() {
        1 => String::new(),
        _ => printable(&format!(" ({} [{}])", thread.name, thread.tid)),
    };
    let over = match over {
        0 => String::new(),
        over => format!(", {over} above it"),
    };
    let counted = counted(cycles, "cycle");
    Some(format!(
        "worst {worst} of a budget of {budget} in {counted}{of}{over}: at most 1 in {one_in} exceeds it, \
         with 95 % confidence"
    ))
}

fn undecided(report: &Report) -> String {
    let unseen = report.unseen().take(NAMED).map(|one| printable(&one)).collect::<Vec<_>>();
    format!("not decided: {}; no error in {}", unseen.join(", "), counted(cycles(report), "cycle"))
}

/// The first breaches that count, each with its thread where there are several.
fn failed(report: &Report, rules: &[Rule]) -> String {
    let several = report.threads.len() + report.findings.len() > 1;
    let findings = report.failing_findings(rules).map(line);
    let counts = |breach: &&BreachReport| match rules {
        [] => breach.level == Level::Error,
        rules => rules.contains(&breach.rule),
    };
    let groups = groups(&report.threads);
    let breaches = groups.iter().flat_map(|group| {
        let (thread, others) = (group.worst, group.others.len());
        let of = match (several, others) {
            (false, _) => String::new(),
            (true, 0) => format!("{} [{}]: ", thread.name, thread.tid),
            (true, _) => format!("{} [{}] and {others} like it: ", thread.name, thread.tid),
        };
        let failing = thread.breaches.iter().filter(counts);
        failing.map(|breach| format!("{of}{}", short(breach))).collect::<Vec<_>>()
    });
    let all: Vec<String> = findings.chain(breaches).collect();
    let named = all.iter().take(NAMED).map(|one| printable(one));
    let mut line = format!("NOT real-time: {}", named.collect::<Vec<_>>().join(", "));
    if all.len() > NAMED {
        let _ = write!(line, ", and {} more", all.len() - NAMED);
    }
    line
}

/// A finding about a thread in one line.
pub fn line(finding: &Finding) -> String {
    let Finding { name, tid, subject, count, .. } = finding;
    let times = if *count > 1 { format!(", {count} times") } else { String::new() };
    let place = finding.place.iter().map(|place| format!(" in {place}")).collect::<String>();
    format!("{name} [{tid}] {subject}{times}{place}")
}

/// A finding about a thread with all that is known.
pub(super) fn describe(finding: &Finding) -> String {
    let (rule, level) = (finding.rule, level(finding.level));
    let mut text = format!("{level} {rule}: {}\n", printable(&line(finding)));
    for detail in &finding.details {
        let _ = writeln!(text, "  {}", printable(detail));
    }
    for line in stack(&finding.stack, finding.place.as_deref()) {
        let _ = writeln!(text, "    {line}");
    }
    let _ = writeln!(text, "  {}\n  {}", rule.meaning(), rule.remedy());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_check::{CycleReport, Spread, ThreadReport};
    use latlab_core::time::Nanos;

    /// A thread whose cycles take a third of their period, and overran if there is a breach of that rule.
    fn thread(nth: u32, rule: Option<Rule>) -> ThreadReport {
        let spread = |max| Spread { min: Nanos(1), median: Nanos(max / 2), max: Nanos(max) };
        let breach = |rule: Rule| BreachReport {
            rule,
            level: rule.level(),
            subject: "call of write".to_owned(),
            place: Some("log_state (loop.c:7)".to_owned()),
            count: 5,
            part: None,
            moment: Nanos(0),
            first: 0,
            last: 9,
            longest: Nanos(0),
            by: None,
            stack: Vec::new(),
        };
        ThreadReport {
            name: format!("worker-{nth}"),
            tid: nth,
            pid: 1,
            policy: "SCHED_FIFO 50".to_owned(),
            cycle: CycleReport {
                waits_for: "a time".to_owned(),
                count: 300,
                period: Some(Nanos(1_000_000 + u64::from(nth))),
                deadline: None,
                overruns: 0,
                left_out: 0,
                warm_up: 0,
                stops: None,
                reasons: Vec::new(),
                latency: None,
                running: spread(200_000),
                response: spread(300_000 + u64::from(nth)),
                parts: None,
                worst: None,
            },
            breaches: rule.into_iter().map(breach).collect(),
        }
    }

    fn report(threads: Vec<ThreadReport>) -> Report {
        Report { threads, ..Report::default() }
    }

    #[test]
    fn pass_has_its_margin_with_a_bound() {
        let line = verdict(&report(vec![thread(0, None)]), &[]);
        let margin = "worst 300 us of a budget of 1 ms in 300 cycles: at most 1 in 100 exceeds it, with 95 % \
                      confidence";
        assert_eq!(line, format!("real-time: no error in 300 cycles; {margin}"));
    }

    #[test]
    fn thread_that_fails_is_named_among_many() {
        let mut threads: Vec<ThreadReport> = (0..64).map(|nth| thread(nth, None)).collect();
        threads[40] = thread(40, Some(Rule::FileIo));
        let many = report(threads);
        let line = verdict(&many, &[]);
        let failing = "worker-40 [40]: 5 calls of write in log_state (loop.c:7)";
        assert_eq!(line, format!("NOT real-time: {failing}"));
        let text = super::super::text(&many, &[]);
        assert!(text.lines().count() < 30, "{text}");
        assert!(
            text.contains("the other 62 threads of its kind have shorter longest cycles"),
            "{text}"
        );
        let [failing, clean] = ["worker-40 [40], SCHED", "worker-63 [63], SCHED"]
            .map(|heading| text.find(heading).unwrap_or_else(|| panic!("{heading}: {text}")));
        assert!(failing < clean);
    }

    #[test]
    fn failing_threads_that_are_alike_are_named_once() {
        let threads = (0..8).map(|nth| thread(nth, Some(Rule::FileIo))).collect();
        let line = verdict(&report(threads), &[]);
        let named = "worker-7 [7] and 7 like it: 5 calls of write in log_state (loop.c:7)";
        assert_eq!(line, format!("NOT real-time: {named}"));
    }

    #[test]
    fn check_that_left_out_or_lost_too_much_is_not_decided() {
        let of = |left_out, lost| {
            let mut one = thread(0, None);
            one.cycle.left_out = left_out;
            Report { events: 10_000, lost, ..report(vec![one]) }
        };
        assert_eq!(of(33, 100).verdict(&[]), Verdict::RealTime);
        let left_out = of(100, 0);
        assert_eq!(left_out.verdict(&[]), Verdict::Undecided);
        let line =
            "not decided: 100 of 400 cycles of worker-0 [0] are left out; no error in 300 cycles";
        assert_eq!(verdict(&left_out, &[]), line);
        let lost = of(0, 200);
        assert!(verdict(&lost, &[]).starts_with("not decided: 200 of 10200 events were lost"));
        let mut failing = of(100, 0);
        failing.threads[0].breaches = thread(0, Some(Rule::FileIo)).breaches;
        assert_eq!(failing.verdict(&[]), Verdict::NotRealTime);
    }
}
