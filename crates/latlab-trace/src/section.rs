//! The latency tracers of ftrace: the longest section with interrupts or preemption off (irqsoff, preemptoff,
//! preemptirqsoff), and the latest wake-up (wakeup, `wakeup_rt`, `wakeup_dl`).
//! Source: Documentation/trace/ftrace.rst.

use crate::functions::Functions;
use crate::line::word;
use crate::stack;
use latlab_core::cause::Cause;
use latlab_core::explain::charge::{Charge, Culprit, Explanation};
use latlab_core::explain::lock::is_taker;
use latlab_core::explain::names::Names;
use latlab_core::explain::{Comm, Task};
use latlab_core::time::Nanos;

/// The longest section or the latest wake-up that a tracer has seen.
#[derive(Debug)]
pub struct Section {
    /// The tracer.
    pub tracer: String,
    /// The release of the kernel.
    pub kernel: String,
    /// The CPU.
    pub cpu: u32,
    /// What the tracer measured, and who is to blame for it.
    pub explanation: Explanation,
    /// The functions of the explanation.
    pub names: Names,
    /// What else the trace shows, a sentence each.
    pub notes: Vec<String>,
    /// Of a wake-up, its events as lines of a trace.
    pub events: Vec<String>,
}

/// Why the trace of a latency tracer can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is a trace of the tracer {tracer}, but {why}")]
pub struct SectionError {
    /// The tracer.
    pub tracer: String,
    /// What is wrong, as a clause.
    pub why: &'static str,
}

/// The tracers of sections, with the cause that a wake-up in such a section has.
const SECTIONS: [(&str, Cause); 3] = [
    ("irqsoff", Cause::InterruptsOff),
    ("preemptoff", Cause::NonPreemptible),
    ("preemptirqsoff", Cause::NonPreemptible),
];
/// The tracers of wake-ups.
const WAKE_UPS: [&str; 3] = ["wakeup", "wakeup_rt", "wakeup_dl"];
/// What follows the name of the tracer in the first line of its header.
const TITLE: &str = " latency trace v";

/// What the header says.
#[derive(Debug, Default)]
struct Header {
    latency: Option<Nanos>,
    cpu: u32,
    task: Task,
    started: Option<String>,
}

/// An entry of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<'a> {
    task: &'a str,
    cpu: u32,
    at: Nanos,
    text: &'a str,
}

/// Reads the trace of a latency tracer; none if the text is none.
pub fn read(text: &str) -> Option<Result<Section, SectionError>> {
    let title = text.lines().take(64).find(|line| line.contains(TITLE))?;
    let (tracer, rest) = title.trim_start_matches(['#', '>', ' ']).split_once(TITLE)?;
    let kernel = rest.split_once(" on ").map_or("", |(_, kernel)| kernel.trim());
    let cause = SECTIONS.iter().find(|(name, _)| *name == tracer).map(|(_, cause)| *cause);
    let is_wake_up = WAKE_UPS.contains(&tracer);
    if cause.is_none() && !is_wake_up {
        return None;
    }
    let error = |why| Err(SectionError { tracer: tracer.to_owned(), why });
    let header = Header::read(text);
    let entries: Vec<Entry<'_>> = text.lines().filter_map(Entry::parse).collect();
    let Some(latency) = header.latency else {
        return Some(error("its line '# latency:' is missing"));
    };
    if entries.is_empty() {
        return Some(error("it has no entry: the tracer has recorded nothing yet"));
    }
    let mut functions = Functions::default();
    let explanation = match cause {
        Some(cause) => {
            explained(cause, latency, &header, &stack_of(text, &header, &entries), &mut functions)
        }
        None => Explanation { charges: Vec::new(), unexplained: latency },
    };
    let events = if is_wake_up { wake_up(&entries) } else { Vec::new() };
    Some(Ok(Section {
        tracer: tracer.to_owned(),
        kernel: kernel.to_owned(),
        cpu: header.cpu,
        explanation,
        names: functions.new_names().unwrap_or_default(),
        notes: longest_step(&entries, latency).into_iter().collect(),
        events,
    }))
}

impl Header {
    fn read(text: &str) -> Header {
        let mut header = Header::default();
        for line in text.lines() {
            let line = line.trim_start_matches(['>', ' ']);
            let Some(line) = line.strip_prefix('#') else { continue };
            let line = line.trim_start_matches(['|', ' ']);
            if let Some(rest) = line.strip_prefix("latency: ") {
                let micros = word(rest).0.parse::<u64>().ok();
                header.latency = micros.and_then(|us| us.checked_mul(1_000)).map(Nanos);
                let cpu = rest.split_once("CPU#").map(|(_, rest)| word(rest).0);
                header.cpu = cpu.and_then(|cpu| cpu.parse().ok()).unwrap_or(0);
            } else if let Some(rest) = line.strip_prefix("task: ") {
                header.task = task(rest).unwrap_or_default();
            } else if let Some(rest) = line.strip_prefix("=> started at:") {
                header.started = Some(rest.trim().to_owned());
            }
        }
        header
    }
}

/// `dd-805 (uid:0 nice:0 policy:0 rt_prio:0)`.
fn task(text: &str) -> Option<Task> {
    let (who, rest) = text.split_once(" (")?;
    let (comm, pid) = who.rsplit_once('-')?;
    let value = |key: &str| -> Option<i16> {
        let (_, rest) = rest.split_once(key)?;
        rest.split([' ', ')']).next()?.parse().ok()
    };
    let prio = match (value("rt_prio:"), value("nice:")) {
        (Some(rt), _) if rt > 0 => 99 - rt,
        (_, nice) => nice.unwrap_or(0).saturating_add(120),
    };
    Some(Task { pid: pid.parse().ok()?, prio, comm: Comm::from(comm) })
}

impl<'a> Entry<'a> {
    /// `dd-805  0d....  1542us+: function <-caller`: the task, the CPU with flags, the time with a mark, the entry.
    fn parse(line: &'a str) -> Option<Entry<'a>> {
        let (before, text) = line.match_indices("us").find_map(|(at, _)| {
            let before = &line[..at];
            let text = line.get(at + 3..)?.strip_prefix(':')?;
            before.ends_with(|c: char| c.is_ascii_digit()).then_some((before, text.trim()))
        })?;
        let (before, time) = before.rsplit_once(' ')?;
        let (task, flags) = before.trim_end().rsplit_once(' ')?;
        let digits = flags.find(|c: char| !c.is_ascii_digit()).unwrap_or(flags.len());
        let micros: u64 = time.parse().ok()?;
        Some(Entry {
            task: task.trim_start_matches(['>', ' ']).trim_end(),
            cpu: flags[..digits].parse().ok()?,
            at: Nanos(micros.checked_mul(1_000)?),
            text,
        })
    }

    /// The function that was entered, and its caller.
    fn function(&self) -> (&'a str, Option<&'a str>) {
        match self.text.split_once(" <-") {
            Some((function, caller)) => (function.trim(), Some(caller.trim())),
            None => (self.text, None),
        }
    }
}

/// The stack of the section: where it started, and who called for it.
fn stack_of(text: &str, header: &Header, entries: &[Entry<'_>]) -> Vec<String> {
    let first = entries.first().map(Entry::function);
    let started = header.started.clone().or_else(|| first.map(|(function, _)| function.to_owned()));
    let caller = first.and_then(|(_, caller)| caller.map(str::to_owned));
    let outer = text.lines().filter(|line| line.trim_start().starts_with("=>"));
    let outer = outer.filter_map(stack::function).map(str::to_owned);
    let mut stack: Vec<String> = started.into_iter().chain(caller).chain(outer).collect();
    stack.dedup();
    // Who took a lock is to blame, not the function that takes locks.
    let first = stack.iter().position(|name| !is_taker(name) && !name.starts_with("_raw_"));
    stack.split_off(first.unwrap_or(0))
}

fn explained(
    cause: Cause,
    latency: Nanos,
    header: &Header,
    stack: &[String],
    functions: &mut Functions,
) -> Explanation {
    let stack = stack.iter().map(|name| functions.address(name)).collect();
    let culprit = Culprit { task: Some(header.task), stack, ..Culprit::default() };
    let charge = Charge { cause: cause.name(), from: Nanos(0), to: latency, culprit };
    Explanation { charges: vec![charge], unexplained: Nanos(0) }
}

/// The longest time between two entries, where functions were traced.
fn longest_step(entries: &[Entry<'_>], latency: Nanos) -> Option<String> {
    let steps = entries.windows(2).filter(|pair| pair[1].at >= pair[0].at);
    let longest = steps.max_by_key(|pair| pair[1].at - pair[0].at)?;
    let (length, (function, caller)) = (longest[1].at - longest[0].at, longest[0].function());
    let caller = caller.map(|caller| format!(", called from {caller}")).unwrap_or_default();
    let is_function = !function.is_empty() && !function.contains(' ');
    (is_function && entries.len() > 2 && length.0 * 2 > latency.0).then(|| {
        format!("the longest step took {length}, from the entry of {function}{caller}, to the next entry")
    })
}

/// The events of a wake-up as lines of a trace. The first names the task that had the CPU.
fn wake_up(entries: &[Entry<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in entries {
        let (text, waking) = match (entry.text.split_once(" + "), entry.text.split_once(" ==> ")) {
            (Some(parts), _) => (parts, true),
            (_, Some(parts)) => (parts, false),
            _ => continue,
        };
        let (Some(prev), Some((cpu, next))) = (short(text.0), other(text.1)) else { continue };
        let (comm, pid) = entry.task.rsplit_once('-').unwrap_or((entry.task, "0"));
        let us = entry.at.0 / 1_000;
        let (seconds, fraction) = (us / 1_000_000, us % 1_000_000);
        let mut line = |what: String| {
            lines.push(format!("{comm}-{pid} [{:03}] {seconds}.{fraction:06}: {what}", entry.cpu));
        };
        let task = |prefix: &str, (pid, prio): (&str, &str), comm: &str| {
            format!("{prefix}comm={comm} {prefix}pid={pid} {prefix}prio={prio}")
        };
        let (next_comm, next) = (next.2, (next.0, next.1));
        if waking {
            let from = task("prev_", prev, comm);
            let to = task("next_", prev, comm);
            line(format!("sched_switch: {from} prev_state=R ==> {to}"));
            line(format!("sched_waking: {} target_cpu={cpu}", task("", next, next_comm)));
        } else {
            let (from, to) = (task("prev_", prev, comm), task("next_", next, next_comm));
            line(format!("sched_switch: {from} prev_state=R ==> {to}"));
        }
    }
    lines
}

/// `0:120:R`: the id and priority.
fn short(text: &str) -> Option<(&str, &str)> {
    let mut parts = text.trim().split(':');
    Some((parts.next()?.trim(), parts.next()?.trim()))
}

/// `[003]  2448: 94:R sleep`: the CPU; the id, priority and name.
fn other(text: &str) -> Option<(&str, (&str, &str, &str))> {
    let (cpu, rest) = text.trim().strip_prefix('[')?.split_once(']')?;
    let (pid, prio) = short(rest)?;
    let name = rest.splitn(3, ':').nth(2)?.trim();
    Some((cpu, (pid, prio, word(name).1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IRQSOFF: &str = "\
# tracer: irqsoff
#
# irqsoff latency trace v1.1.5 on 6.14.0-rc7
# latency: 279663 us, #5/5, CPU#0 | (M:NONE VP:0, KP:0, SP:0 HP:0 #P:2)
#    | task: dd-805 (uid:0 nice:0 policy:0 rt_prio:0)
#  => started at: __rmqueue_pcplist
#  => ended at:   _raw_spin_unlock_irqrestore
      dd-805       0d....    1us : __rmqueue_pcplist
      dd-805       0d.... 1542us+: try_to_claim_block <-__rmqueue_pcplist
      dd-805       0d.... 1597us : find_suitable_fallback <-__rmqueue_pcplist
      dd-805       0d.... 279660us : _raw_spin_unlock_irqrestore <-__rmqueue_pcplist
      dd-805       0d.... 279712us : <stack trace>
 => get_page_from_freelist
 => vfs_write
";

    #[test]
    fn section_names_its_function_task_and_longest_step() {
        let section = read(IRQSOFF).expect("it is one").expect("it is whole");
        assert_eq!((section.tracer.as_str(), section.kernel.as_str()), ("irqsoff", "6.14.0-rc7"));
        let [charge] = section.explanation.charges.as_slice() else { panic!("{section:?}") };
        let (from, to) = (Nanos(0), Nanos(279_663_000));
        assert_eq!((charge.cause, charge.from, charge.to), ("interrupts-off", from, to));
        assert_eq!(section.names.function(&charge.culprit).as_deref(), Some("__rmqueue_pcplist"));
        assert_eq!(section.names.culprit(&charge.culprit), "dd (pid 805)");
        let [note] = section.notes.as_slice() else { panic!("{:?}", section.notes) };
        assert!(note.contains("278.1 ms") && note.contains("find_suitable_fallback"), "{note}");
    }

    #[test]
    fn function_that_takes_a_lock_is_not_to_blame() {
        let text =
            IRQSOFF.replace("started at: __rmqueue_pcplist", "started at: _raw_spin_lock_irqsave");
        let text =
            text.replace("1us : __rmqueue_pcplist", "1us : _raw_spin_lock_irqsave <-rmqueue_bulk");
        let section = read(&text).expect("it is one").expect("it is whole");
        let culprit = &section.explanation.charges[0].culprit;
        assert_eq!(section.names.function(culprit).as_deref(), Some("rmqueue_bulk"));
    }

    #[test]
    fn wake_up_is_its_events() {
        let text = "\
# wakeup_rt latency trace v1.1.5 on 6.1.0
# latency: 15 us, #2/2, CPU#3 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)
  <idle>-0       3dNh7    0us :      0:120:R   + [003]  2448: 94:R my sleep
  <idle>-0       3d..3   15us :      0:120:R ==> [003]  2448: 94:R my sleep
";
        let section = read(text).expect("it is one").expect("it is whole");
        let expected = [
            "<idle>-0 [003] 0.000000: sched_switch: prev_comm=<idle> prev_pid=0 prev_prio=120 prev_state=R ==> \
             next_comm=<idle> next_pid=0 next_prio=120",
            "<idle>-0 [003] 0.000000: sched_waking: comm=my sleep pid=2448 prio=94 target_cpu=003",
            "<idle>-0 [003] 0.000015: sched_switch: prev_comm=<idle> prev_pid=0 prev_prio=120 prev_state=R ==> \
             next_comm=my sleep next_pid=2448 next_prio=94",
        ];
        assert_eq!(section.events, expected);
    }

    #[test]
    fn trace_that_lacks_its_latency_or_entries_is_an_error() {
        let error = |text: &str| read(text).expect("it is one").expect_err("it lacks a part").why;
        assert!(error(&IRQSOFF.replace("# latency:", "# gone:")).contains("'# latency:'"));
        let header: String = IRQSOFF.lines().take(7).map(|line| line.to_owned() + "\n").collect();
        assert!(error(&header).contains("no entry"));
        assert!(read("# tracer: nop\n").is_none());
    }
}
