//! Status of the adaptation daemon as text.

use super::printable;
use super::table::fitted;
use super::text::plain_table;
use super::width::Width;
use latlab_mechanism::Mode;
use latlab_mechanism::status::Status;
use latlab_mechanism::violations::{Violation, Violations};
use std::fmt::Write as _;

/// Returns the whole status.
pub fn text(status: &Status, width: Width) -> String {
    let Status { latlab, process, .. } = status;
    let mechanisms = status.mechanisms.join(", ");
    let time = status.at - status.began;
    let mut text = format!("latlab {latlab} (process {process}), for {time}: {mechanisms}\n");
    if let (Some(mode), Some(why)) = (status.mode, &status.mode_because) {
        let mode = match mode {
            Mode::Throughput => "throughput",
            Mode::Latency => "latency",
        };
        let _ = writeln!(text, "mode: {mode} ({})", printable(why));
    }
    if let Some(tasks) = status.realtime_tasks {
        let _ = writeln!(text, "real-time tasks: {tasks}");
    }
    text += &changes(status, width);
    for left in &status.left {
        let reason = printable(&left.because);
        let _ = writeln!(text, "left alone: {}: {reason}", printable(&left.knob));
    }
    for (group, count) in status.asked() {
        let processes = if count == 1 { "1 process" } else { &format!("{count} processes") };
        let _ = writeln!(text, "{group} is requested by {processes}");
    }
    let _ = writeln!(text, "{}", decisions(status));
    if status.unsaid > 0 {
        let _ = writeln!(text, "log messages dropped, as nothing read them: {}", status.unsaid);
    }
    if let Some(violations) = &status.violations {
        text += &wake_ups(violations);
    }
    let (cpu, share) = (status.cpu, status.share() * 100.0);
    let _ = write!(text, "overhead: {cpu} of CPU time, {share:.3} % of a CPU");
    if let Some(programs) = &status.programs {
        let (share, counted) = (programs.share() * 100.0, programs.counted);
        let _ = write!(text, "; BPF programs {share:.3} %, measured for {counted}");
    }
    text + "\n"
}

/// Counts the wake-ups of real-time tasks by lower-priority tasks.
fn wake_ups(violations: &Violations) -> String {
    let Violations { by_interrupts, by_others, last_by_interrupt, last_by_other } = violations;
    let times = |count: &u64, last: &Option<Violation>| {
        let last = last.as_ref().map(|last| format!(" (last: {})", printable(&last.to_string())));
        format!("{count}{}", last.unwrap_or_default())
    };
    let interrupts = times(by_interrupts, last_by_interrupt);
    let others = times(by_others, last_by_other);
    format!(
        "wake-ups by lower-priority tasks: from IRQ threads {interrupts}, from others {others}\n"
    )
}

/// Returns the status with control sequences that replace the contents of the screen.
pub fn screen(status: &Status, width: Width) -> String {
    let lines = width.lay_out(&text(status, width)).replace('\n', "\x1b[K\n");
    format!("\x1b[H{lines}\x1b[J")
}

fn changes(status: &Status, width: Width) -> String {
    if status.changes.is_empty() {
        return "no knob is set\n".to_owned();
    }
    let mut table = plain_table(&["knob", "old", "new", "for", "reason"]);
    for change in &status.changes {
        let time = (status.at - change.since).to_string();
        let reason = format!("{}: {}", change.mechanism, printable(&change.because));
        let [knob, old, new] = [&change.knob, &change.was, &change.to].map(|text| printable(text));
        table.add_row([knob, old, new, time, reason]);
    }
    for nth in 1..5 {
        if let Some(column) = table.column_mut(nth) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    format!("{}\n", fitted(table, width, &[]).text)
}

fn decisions(status: &Status) -> String {
    let mechanisms = status.decisions.iter().map(|(name, count)| format!("{name} {count}"));
    let mechanisms: Vec<String> = mechanisms.collect();
    let decisions = match mechanisms.as_slice() {
        [] => "none".to_owned(),
        some => some.join(", "),
    };
    match status.refused {
        0 => format!("decisions: {decisions}"),
        1 => format!("decisions: {decisions}; 1 request refused"),
        many => format!("decisions: {decisions}; {many} requests refused"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::time::Nanos;
    use latlab_mechanism::status::ActiveChange;
    use latlab_mechanism::violations::{BpfCost, NamedTask};
    use latlab_mechanism::{Decision, Request};

    fn status() -> Status {
        let turned = ActiveChange {
            mechanism: "suppress".to_owned(),
            knob: "preempt".to_owned(),
            thread: None,
            was: "full".to_owned(),
            to: "lazy".to_owned(),
            because: "higher throughput\x1b[2J of ordinary tasks".to_owned(),
            since: Nanos::from_secs(2),
        };
        Status {
            latlab: "0.1.0".to_owned(),
            process: 7,
            at: Nanos::from_secs(12),
            began: Nanos::from_secs(2),
            mechanisms: ["suppress", "mode"].map(str::to_owned).to_vec(),
            mode: Some(Mode::Throughput),
            mode_because: Some("there is no real-time task".to_owned()),
            realtime_tasks: Some(0),
            changes: vec![turned],
            requests: vec![Request { process: 9, thread: None, groups: vec!["AUDIO".to_owned()] }],
            cpu: Nanos::from_millis(1),
            ..Status::default()
        }
    }

    #[test]
    fn status_lists_knobs_with_reason_and_duration() {
        let text = text(&status(), Width::UNLIMITED);
        let expected = "\
latlab 0.1.0 (process 7), for 10 s: suppress, mode
mode: throughput (there is no real-time task)
real-time tasks: 0
knob     old   new   for   reason
preempt  full  lazy  10 s  suppress: higher throughput [2J of ordinary tasks
AUDIO is requested by 1 process
decisions: none
overhead: 1 ms of CPU time, 0.010 % of a CPU
";
        assert_eq!(text, expected);
    }

    #[test]
    fn status_has_violations_and_overhead_if_watched() {
        let task = |id, name: Option<&str>| NamedTask { id, name: name.map(str::to_owned) };
        let last = Violation { waker: task(24, Some("irq/24-eth0")), woken: task(7, None) };
        let violations =
            Violations { by_interrupts: 3, last_by_interrupt: Some(last), ..Violations::default() };
        let programs = BpfCost { counted: Nanos::from_secs(2), taken: Nanos::from_millis(1) };
        let status = Status { violations: Some(violations), programs: Some(programs), ..status() };
        let expected = "\
decisions: none
wake-ups by lower-priority tasks: from IRQ threads 3 (last: irq/24-eth0 (24) woke 7 (ended)), \
from others 0
overhead: 1 ms of CPU time, 0.010 % of a CPU; BPF programs 0.050 %, measured for 2 s
";
        let text = text(&status, Width::UNLIMITED);
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn status_without_changes_names_knobs_left_alone() {
        let mut status = Status { changes: Vec::new(), mode: None, refused: 2, ..status() };
        let [mechanism, knob, because] = ["suppress", "preempt", "somebody has"].map(str::to_owned);
        status.note(Nanos(1), &Decision::Stop { mechanism, knob, thread: None, because });
        let text = text(&status, Width::UNLIMITED);
        assert!(text.contains("no knob is set\nleft alone: preempt: somebody has\n"), "{text}");
        assert!(text.contains("decisions: suppress 1; 2 requests refused\n"), "{text}");
    }
}
