//! How long a thread runs without sleeping. One that never does is throttled, or starves others.

use super::breach::Held;
use super::event::ORDINARY;
use super::event::{Event, EventKind};
use super::finding::{Finding, about};
use super::rule::Rule;
use super::wait::DEADLINE;
use latlab_core::time::Nanos;

/// A thread's activity since it last slept, and the stretch without sleep in which it ran longest.
#[derive(Debug, Default)]
pub(super) struct Awake {
    current: Option<Stretch>,
    longest: Option<Stretch>,
    /// Whether it has slept.
    slept: bool,
}

/// A time without sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: Nanos,
    to: Nanos,
    /// Time on the CPU until then.
    ran: Nanos,
    since: Since,
    /// How often a task of lower priority had the CPU meanwhile.
    throttled: u64,
    /// The longest of these times, and that task.
    longest: Option<(Nanos, Held)>,
}

/// Since when the thread has the CPU, or since when it lacks it and which task has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    Running(Nanos),
    Replaced(Nanos, Option<Held>),
}

/// A thread is busy if it runs this long without sleep: the part of each second that the kernel
/// leaves to real-time tasks by default (`sched_rt_runtime_us`, and the fair server).
const BUSY: Nanos = Nanos::from_millis(950);

impl Awake {
    pub(super) fn handle(&mut self, event: &Event) {
        let at = event.at;
        match &event.kind {
            EventKind::Out { reason, .. } if reason.is_sleep() => self.sleep(at),
            EventKind::Out { next, prio, comm, .. } => {
                let next = Held { comm: *comm, tid: *next, prio: *prio };
                if let Some(current) = &mut self.current {
                    current.advance(at);
                    current.since = Since::Replaced(at, (*prio >= ORDINARY).then_some(next));
                }
            }
            // Its time on the CPU is used up until its next period: it is not switched out asleep.
            EventKind::Enter { call: "sched_yield", .. } if event.thread.policy == DEADLINE => {
                self.sleep(at);
            }
            EventKind::Waking { .. } | EventKind::Migrate => {}
            EventKind::In => self.run(at),
            _ => {
                self.current.get_or_insert_with(|| Stretch::new(at));
            }
        }
    }

    /// A thread that caused no event in this time, and ran for part of it.
    pub(super) fn without_events(from: Nanos, to: Nanos, ran: Nanos) -> Awake {
        let longest = Some(Stretch { to, ran, ..Stretch::new(from) });
        Awake { longest, ..Awake::default() }
    }

    /// The thread gets the CPU.
    fn run(&mut self, at: Nanos) {
        let current = self.current.get_or_insert_with(|| Stretch::new(at));
        if let Since::Replaced(from, by) = current.since {
            current.since = Since::Running(at);
            if let Some(by) = by {
                current.throttled += 1;
                let longest = current.longest.filter(|(longest, _)| *longest >= at - from);
                current.longest = longest.or(Some((at - from, by)));
            }
        }
    }

    fn sleep(&mut self, at: Nanos) {
        self.stop(at);
        self.slept = true;
    }

    /// The thread sleeps or ends, or watching ends.
    pub(super) fn stop(&mut self, at: Nanos) {
        let Some(mut ended) = self.current.take() else { return };
        ended.advance(at);
        if self.longest.is_none_or(|longest| ended.ran > longest.ran) {
            self.longest = Some(ended);
        }
    }

    /// The finding about a thread that ran too long without sleep. A thread with cycles may have done so
    /// before the first, which `begun` is the time of.
    pub(super) fn finding(&self, thread: super::Thread, begun: Option<Nanos>) -> Option<Finding> {
        // One without a real-time policy starves no task and is not throttled.
        let busy = self.longest.filter(|longest| longest.ran >= BUSY && thread.is_realtime());
        let busy = busy.filter(|busy| begun.is_none_or(|begun| busy.from >= begun))?;
        let slept = if self.slept { "did not sleep for" } else { "never slept in" };
        let (whole, ran) = (busy.to - busy.from, busy.ran);
        let throttled = busy.longest.map(|(longest, by)| {
            let (count, by) = (busy.throttled, by.describe());
            format!("; throttled in {count} intervals, the longest {longest} long, while {by} ran")
        });
        let throttled = throttled.unwrap_or_else(|| "; never throttled".to_owned());
        let subject = format!("{slept} {whole}, of which it ran {ran}{throttled}");
        Some(Finding { subject, ..about(thread, Rule::Busy) })
    }
}

impl Stretch {
    fn new(from: Nanos) -> Stretch {
        let (ran, since) = (Nanos(0), Since::Running(from));
        Stretch { from, to: from, ran, since, throttled: 0, longest: None }
    }

    fn advance(&mut self, at: Nanos) {
        self.to = at;
        if let Since::Running(from) = self.since {
            self.ran = self.ran + (at - from);
            self.since = Since::Running(at);
        }
    }
}
