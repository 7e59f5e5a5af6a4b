//! The activities of a CPU before a late wake-up, from its events.

use super::names::{Names, softirq};
use super::{Event, EventKind, Task};
use crate::record::explained::{Activity, Kind};
use crate::time::Nanos;

/// Returns the activities between `from` and `until`, in the order of their ends, with times since
/// `origin`: tasks, which are disjoint, and interrupts, softirqs and callbacks, which are nested.
/// Activities in progress end at `until`. Activities whose begin is missing are unknown.
pub fn activities(
    events: &[Event],
    (from, until): (Nanos, Nanos),
    origin: Nanos,
    names: &Names,
) -> Vec<Activity> {
    let events = events.iter().filter(|event| event.at >= from && event.at <= until);
    let mut history = History { task: None, open: Vec::new(), done: Vec::new(), origin };
    for event in events {
        history.add(event, names);
    }
    if let Some(task) = history.task.take() {
        history.close(task, until);
    }
    while let Some((_, one)) = history.open.pop() {
        history.close(one, until);
    }
    history.done
}

/// The activities so far.
struct History {
    /// The task that has the CPU.
    task: Option<Begun>,
    /// The interrupts, softirqs and callbacks that run, each within the one before.
    open: Vec<(Level, Begun)>,
    done: Vec<Activity>,
    origin: Nanos,
}

/// What runs on top of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Interrupt,
    Softirq,
    Timer,
    Callback,
}

/// An activity that has not ended.
struct Begun {
    at: Nanos,
    kind: Kind,
    name: String,
}

impl History {
    fn add(&mut self, event: &Event, names: &Names) {
        let at = event.at;
        let function_at = |address| names.short(address).unwrap_or_else(|| format!("{address:#x}"));
        match event.kind {
            EventKind::Switch { next, .. } => self.switch(at, next),
            EventKind::Interrupt { line, .. } => {
                self.begin(at, Level::Interrupt, names.interrupt(line));
            }
            EventKind::InterruptEnd => self.end(at, Level::Interrupt),
            EventKind::Softirq(number) => {
                self.begin(at, Level::Softirq, format!("softirq {}", softirq(number)));
            }
            EventKind::SoftirqEnd => self.end(at, Level::Softirq),
            EventKind::Timer { function, .. } => {
                // The end of a callback before it may not have been reported.
                if self.open.last().is_some_and(|(level, _)| *level == Level::Timer) {
                    self.end(at, Level::Timer);
                }
                self.begin(at, Level::Timer, function_at(function));
            }
            EventKind::TimerEnd => self.end(at, Level::Timer),
            EventKind::Callback { function } => {
                self.begin(at, Level::Callback, function_at(function));
            }
            EventKind::CallbackEnd => self.end(at, Level::Callback),
            _ => {}
        }
    }

    fn switch(&mut self, at: Nanos, next: Task) {
        let idle = next.is_idle().then(|| "idle".to_owned());
        let name = idle.unwrap_or_else(|| format!("{} (pid {})", next.comm, next.pid));
        if let Some(task) = self.task.replace(Begun { at, kind: Kind::Task, name }) {
            self.close(task, at);
        }
    }

    fn begin(&mut self, at: Nanos, level: Level, name: String) {
        self.open.push((level, Begun { at, kind: Kind::Interrupt, name }));
    }

    /// Ends the last activity of this level, and those within it whose ends are missing.
    fn end(&mut self, at: Nanos, level: Level) {
        let last = self.open.iter().rposition(|(open, _)| *open == level);
        let ended = last.map(|last| self.open.split_off(last)).unwrap_or_default();
        ended.into_iter().rev().for_each(|(_, one)| self.close(one, at));
    }

    fn close(&mut self, Begun { at, kind, name }: Begun, end: Nanos) {
        self.done.push(Activity { at: at - self.origin, ns: end - at, kind, name });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::{Comm, InterruptedContext, Line};

    fn event(at: u64, kind: EventKind) -> Event {
        Event { at: Nanos(at), kind, task: Task::default(), stolen: Nanos(0) }
    }

    fn switch(at: u64, pid: u32) -> Event {
        let next = Task { pid, prio: 120, comm: Comm::from("cc1") };
        event(at, EventKind::Switch { next, preempted: false })
    }

    fn found(events: &[Event]) -> Vec<(u64, u64, String)> {
        let all = activities(events, (Nanos(100), Nanos(200)), Nanos(50), &Names::default());
        all.into_iter().map(|one| (one.at.0, one.ns.0, one.name)).collect()
    }

    #[test]
    fn activities_are_closed_in_the_order_of_their_ends() {
        let interrupt =
            EventKind::Interrupt { line: Line::Timer, context: InterruptedContext::default() };
        let timer = EventKind::Timer { function: 16, due: Nanos(0) };
        let events = [
            switch(90, 5),
            event(101, EventKind::SoftirqEnd),
            switch(110, 7),
            event(120, interrupt),
            event(121, timer),
            event(125, EventKind::InterruptEnd),
            event(126, EventKind::Softirq(3)),
            switch(150, 0),
            event(210, EventKind::SoftirqEnd),
        ];
        let expected = [
            (71, 4, "0x10"),
            (70, 5, "timer interrupt"),
            (60, 40, "cc1 (pid 7)"),
            (100, 50, "idle"),
            (76, 74, "softirq NET_RX"),
        ];
        assert_eq!(found(&events), expected.map(|(at, ns, name)| (at, ns, name.to_owned())));
        assert!(found(&[]).is_empty());
    }
}
