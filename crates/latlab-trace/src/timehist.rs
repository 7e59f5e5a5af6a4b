//! The table of `perf sched timehist`: a line for each time that a task had a CPU.
//! Source: `tools/perf/builtin-sched.c` of Linux.

use crate::line::{time, word};
use crate::timerlat::ORDINARY;
use crate::watch::Watching;
use latlab_core::explain::{Comm, Event, EventKind, Task, Window};
use latlab_core::plan::Watched;
use latlab_core::time::Nanos;
use std::collections::BTreeMap;

/// A table.
#[derive(Debug)]
pub struct Timehist {
    /// The wake-ups, in the order in which their tasks ran.
    pub windows: Vec<Window>,
    /// Whether it has priorities: without them no cause can be told.
    pub has_priorities: bool,
}

/// Columns behind the name of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Priority,
    /// The time from the wake-up to the switch.
    Delay,
    Run,
    Other,
}

/// A time that a task had a CPU.
#[derive(Clone, Copy, Debug)]
struct Run {
    cpu: u32,
    task: Task,
    from: Nanos,
    to: Nanos,
    delay: Nanos,
}

/// Reads the wake-ups of the watched tasks in a table, by default of all tasks but threads of the kernel; none if the
/// text is none.
pub fn read(text: &str, watched: Option<Watched>) -> Option<Timehist> {
    let (begin, header) = text.lines().enumerate().find(|(_, line)| {
        line.contains("task name") && line.contains("sch delay") && line.contains("run time")
    })?;
    let columns = columns(header);
    let has_priorities = columns.contains(&Column::Priority);
    let mut runs: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
    for run in text.lines().skip(begin + 1).filter_map(|line| Run::parse(line, &columns)) {
        runs.entry(run.cpu).or_default().push(run);
    }
    let mut windows = Vec::new();
    for runs in runs.values_mut() {
        runs.sort_by_key(|run| run.from);
        let woken = (0..runs.len()).filter(|nth| runs[*nth].delay > Nanos(0));
        windows.extend(woken.map(|nth| window(&runs[..=nth], has_priorities)));
    }
    let watching = Watching::new(watched);
    windows.retain(|window: &Window| watching.has(&window.task));
    windows.sort_by_key(|window| window.ran);
    Some(Timehist { windows, has_priorities })
}

fn columns(header: &str) -> Vec<Column> {
    let rest = header.split_once("task name").map_or("", |(_, rest)| rest);
    let names = [
        ("prio", Column::Priority),
        ("wait time", Column::Other),
        ("sch delay", Column::Delay),
        ("pre-mig time", Column::Other),
        ("run time", Column::Run),
        ("state", Column::Other),
    ];
    let mut found: Vec<(usize, Column)> =
        names.iter().filter_map(|(name, column)| Some((rest.find(name)?, *column))).collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, column)| column).collect()
}

impl Run {
    /// `103032.736716 [0001]  schbench[47229/47207]   10.664  9.231  0.039`.
    fn parse(line: &str, columns: &[Column]) -> Option<Run> {
        let (stamp, rest) = word(line);
        let (to, _) = time(stamp)?;
        let (cpu, rest) = rest.strip_prefix('[')?.split_once(']')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let first = words.len().checked_sub(columns.len())?;
        let task = words.get(..first)?.join(" ");
        let (mut prio, mut delay, mut length) = (ORDINARY, Nanos(0), Nanos(0));
        for (column, word) in columns.iter().zip(&words[first..]) {
            match column {
                Column::Priority => prio = word.parse().ok()?,
                Column::Delay => delay = milliseconds(word)?,
                Column::Run => length = milliseconds(word)?,
                Column::Other => {}
            }
        }
        let task = Run::task(&task, prio)?;
        let from = to.0.checked_sub(length.0).map(Nanos)?;
        Some(Run { cpu: cpu.parse().ok()?, task, from, to, delay })
    }

    /// `name[thread/process]`, `name[process]` or `<idle>`.
    fn task(text: &str, prio: i16) -> Option<Task> {
        if text == "<idle>" {
            return Some(Task { pid: 0, prio: 120, comm: Comm::from("swapper") });
        }
        let (comm, ids) = text.strip_suffix(']')?.rsplit_once('[')?;
        let pid = ids.split('/').next()?.parse().ok()?;
        Some(Task { pid, prio, comm: Comm::from(comm.trim()) })
    }
}

fn milliseconds(word: &str) -> Option<Nanos> {
    let (whole, part) = word.split_once('.')?;
    let micros = whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(part.parse().ok()?)?;
    (part.len() == 3).then_some(Nanos(micros.checked_mul(1_000)?))
}

/// The wake-up of the last of these runs of a CPU.
fn window(runs: &[Run], has_priorities: bool) -> Window {
    let (last, before) = runs.split_last().expect("there is one");
    let waking = last.from - last.delay;
    let first = before.iter().rposition(|run| run.to <= waking).map_or(0, |nth| nth + 1);
    let idle = Task { pid: 0, prio: 120, comm: Comm::from("swapper") };
    let mut events = Vec::new();
    let mut current = idle;
    let mut switch = |at: Nanos, next: Task, events: &mut Vec<Event>| {
        let kind = EventKind::Switch { next, preempted: true };
        events.push(Event { at, task: current, kind, stolen: Nanos(0) });
        current = next;
    };
    for (nth, run) in before.iter().enumerate().skip(first) {
        switch(run.from, run.task, &mut events);
        let next = before.get(nth + 1).unwrap_or(last);
        if next.from > run.to {
            switch(run.to, idle, &mut events);
        }
    }
    switch(last.from, last.task, &mut events);
    Window {
        task: last.task,
        cpu: last.cpu,
        due: waking,
        expiry: waking,
        waking,
        waker_cpu: last.cpu,
        switched: last.from,
        ran: last.from,
        out: last.to,
        events: if has_priorities { events } else { Vec::new() },
        lacks_interrupts: true,
        ..Window::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
           time    cpu  task name                       wait time  sch delay   run time
                        [tid/pid]                          (msec)     (msec)     (msec)
--------------- ------  ------------------------------  ---------  ---------  ---------
    5.000000 [0001]  hog[7]                          0.000      0.000      3.000
    5.000100 [0001]  my task[42/40]                 10.664      2.500      0.100
";

    #[test]
    fn wake_up_is_found_between_runs() {
        let found = read(TABLE, None).expect("it is one");
        let [window] = found.windows.as_slice() else { panic!("{found:?}") };
        assert_eq!((window.task.pid, window.task.comm.to_string().as_str()), (42, "my task"));
        assert_eq!((window.cpu, window.latency()), (1, Nanos(2_500_000)));
        assert!(!found.has_priorities && window.events.is_empty());
        assert!(read("time cpu", None).is_none());
        let realtime = read(TABLE, Some(Watched::Realtime)).expect("it is one");
        assert_eq!(realtime.windows, [], "priorities are not known");
    }

    #[test]
    fn priorities_tell_who_had_the_cpu() {
        let text = TABLE.replace("wait time  sch", "prio  wait time  sch");
        let text =
            text.replace("0.000      0.000 ", "9 0.000      0.000 ").replace("10.664", "19 10.664");
        let found = read(&text, None).expect("it is one");
        let [window] = found.windows.as_slice() else { panic!("{found:?}") };
        let next: Vec<(u32, i16)> = window
            .events
            .iter()
            .map(|event| match event.kind {
                EventKind::Switch { next, .. } => (next.pid, next.prio),
                _ => panic!("{event:?}"),
            })
            .collect();
        assert_eq!(next, [(7, 9), (42, 19)]);
    }
}
