//! One event as a line of text: the form of ftrace and Perfetto's systrace, of `trace-cmd report`, and of `perf script`.
//! Source: `kernel/trace/trace_output.c`, `tools/perf/builtin-script.c` of Linux; `trace-cmd report`.

use latlab_core::time::Nanos;

/// A line with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The name of the current task.
    pub(crate) comm: &'a str,
    /// Its thread id.
    pub(crate) pid: u32,
    /// Its process, where the line names it.
    pub(crate) process: Option<u32>,
    pub(crate) cpu: u32,
    /// The context of the event, where the line shows flags.
    pub(crate) context: Option<Context>,
    /// The time, on the clock of the trace.
    pub(crate) at: Nanos,
    /// Whether the time has fractions of a microsecond.
    pub(crate) is_precise: bool,
    /// The name of the event, without its system; empty where there is none.
    pub(crate) event: &'a str,
    /// What follows the name.
    pub(crate) fields: &'a str,
}

/// The context in which an event came, from the flags of ftrace (Documentation/trace/ftrace.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    /// Whether an interrupt was being handled.
    pub(crate) in_interrupt: bool,
    /// Whether a softirq was being handled, also below an interrupt.
    pub(crate) in_softirq: bool,
    /// How often preemption was disabled.
    pub(crate) depth: u32,
}

impl<'a> Line<'a> {
    /// Parses a line; none if it has no event.
    pub(crate) fn parse(text: &'a str) -> Option<Line<'a>> {
        let (before, cpu, after) = split_at_cpu(text)?;
        let (comm, pid, process) = task(before)?;
        let (first, rest) = word(after);
        let (context, stamp, rest) = if let Some(stamp) = time(first) {
            (None, stamp, rest)
        } else {
            let (second, rest) = word(rest);
            (Context::parse(first), time(second)?, rest)
        };
        let (event, fields) = event(rest);
        let (at, is_precise) = stamp;
        Some(Line { comm, pid, process, cpu, context, at, is_precise, event, fields })
    }
}

impl Context {
    /// Parses the flags: interrupts, rescheduling, context, depth, and others in newer kernels. Real-time kernels with
    /// lazy preemption had two more, the first before the context.
    fn parse(flags: &str) -> Option<Context> {
        let before = if flags.len() >= 7 { 3 } else { 2 };
        let mut flags = flags.chars().skip(before);
        let (context, depth) = (flags.next()?, flags.next()?);
        Some(Context {
            in_interrupt: matches!(context, 'h' | 'H'),
            in_softirq: matches!(context, 's' | 'H'),
            depth: depth.to_digit(16).unwrap_or(0),
        })
    }
}

/// The first word, and the rest behind the blanks that follow it.
pub(crate) fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// Splits a line at its CPU, a number in brackets.
fn split_at_cpu(text: &str) -> Option<(&str, u32, &str)> {
    text.match_indices('[').find_map(|(at, _)| {
        let (number, after) = text[at + 1..].split_once(']')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let before = &text[..at];
        let is_apart = before.ends_with([' ', '\t', ')']) && after.starts_with([' ', '\t']);
        (is_number && is_apart).then(|| Some((before, number.parse().ok()?, after)))?
    })
}

/// The task before the CPU: `comm-pid`, `comm-pid (process)`, `comm pid` or `comm process/pid`.
fn task(text: &str) -> Option<(&str, u32, Option<u32>)> {
    let text = text.trim();
    let (text, process) = match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        Some((task, process)) => (task.trim_end(), process.trim().parse().ok()),
        None => (text, None),
    };
    if let Some((comm, pid)) = text.rsplit_once('-')
        && let Ok(pid) = pid.parse()
    {
        return Some((comm, pid, process));
    }
    let (comm, ids) = text.rsplit_once([' ', '\t'])?;
    let (process, pid) = match ids.split_once('/') {
        Some((process, pid)) => (process.parse().ok(), pid),
        None => (process, ids),
    };
    Some((comm.trim_end(), pid.parse().ok()?, process))
}

/// Parses `seconds.fraction:`, and whether the fraction has more than six digits.
pub(crate) fn time(word: &str) -> Option<(Nanos, bool)> {
    let (seconds, fraction) = word.strip_suffix(':').unwrap_or(word).split_once('.')?;
    let digits = fraction.len();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) || digits > 9 {
        return None;
    }
    let rest = fraction.parse::<u64>().ok()? * 10u64.pow(u32::try_from(9 - digits).ok()?);
    let all = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(rest)?;
    Some((Nanos(all), digits > 6))
}

/// The name of the event and its fields. perf counts the events first, and names their system.
fn event(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (first, rest) = word(text);
    let text = if first.parse::<u64>().is_ok() { rest } else { text };
    let (name, fields) = word(text);
    match name.strip_suffix(':') {
        Some(name) => (name.rsplit(':').next().unwrap_or(name), fields),
        None => ("", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Line<'_> {
        Line::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn line_of_each_tool_is_the_same_event() {
        let expected = Line {
            comm: "my task-2",
            pid: 42,
            process: None,
            cpu: 3,
            context: None,
            at: Nanos(1_041_357_252_000),
            is_precise: false,
            event: "softirq_exit",
            fields: "vec=4 [action=BLOCK]",
        };
        let context = Context { in_interrupt: false, in_softirq: true, depth: 1 };
        let ftrace = "  my task-2-42  [003] .Ns1.  1041.357252: softirq_exit: vec=4 [action=BLOCK]";
        assert_eq!(parse(ftrace), Line { context: Some(context), ..expected });
        let trace_cmd =
            "  my task-2-42  [003]  1041.357252: softirq_exit:         vec=4 [action=BLOCK]";
        assert_eq!(parse(trace_cmd), expected);
        let systrace =
            " my task-2-42 (   40) [003] .Ns1  1041.357252: softirq_exit: vec=4 [action=BLOCK]";
        assert_eq!(parse(systrace), Line { context: Some(context), process: Some(40), ..expected });
        let perf =
            "my task-2  40/42  [003]  1041.357252123:  1 irq:softirq_exit: vec=4 [action=BLOCK]";
        let precise = Line { at: Nanos(1_041_357_252_123), is_precise: true, ..expected };
        assert_eq!(parse(perf), Line { process: Some(40), ..precise });
        let short = "my task-2  42 [003]  1041.357252: irq:softirq_exit: vec=4 [action=BLOCK]";
        assert_eq!(parse(short), expected);
    }

    #[test]
    fn flags_of_old_and_new_kernels_tell_the_context() {
        let context = |text: &str| {
            let Context { in_interrupt, in_softirq, depth } = Context::parse(text).unwrap();
            (in_interrupt, in_softirq, depth)
        };
        assert_eq!(context("d.h1"), (true, false, 1));
        assert_eq!(context("dnLH213"), (true, true, 2));
        assert_eq!(context("..s.."), (false, true, 0));
        assert_eq!(context("d...3"), (false, false, 0));
    }

    #[test]
    fn other_lines_have_no_event() {
        for text in [
            "",
            "# tracer: nop",
            " => try_to_wake_up",
            "CPU:1 [LOST 7 EVENTS]",
            "[000] 1.2: x:",
            "a-1 [000] d.h1. 12: x: y",
            "a-1 [000] 1.0000000001: x: y",
        ] {
            assert_eq!(Line::parse(text), None, "{text}");
        }
        assert_eq!(parse("a-1 [000] d..1. 1.5: #12 context irq timer_latency 5 ns").event, "");
    }
}
