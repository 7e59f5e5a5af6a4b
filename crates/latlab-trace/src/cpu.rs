//! What a CPU did so far, as the events show.

use crate::clock::Expiry;
use crate::line::Context;
use latlab_core::explain::{Event, EventKind, InterruptedContext, Line, Task, Window};
use latlab_core::time::Nanos;
use std::collections::VecDeque;

/// Most events that are kept for each CPU, as the recorder of live explanations keeps.
const KEPT: usize = 16_384;
/// Events before the last context switch that are kept in a window.
const BEFORE: usize = 32;

/// A CPU.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    /// Its current task; none until a context switch has named it.
    current: Option<Task>,
    /// Since when it is known without a gap.
    known_since: Nanos,
    events: VecDeque<Event>,
    /// Whether an interrupt is being handled, and whether only the flags or a timer of another event show it.
    interrupt: Option<Open>,
    in_softirq: bool,
    /// The timer whose callback runs.
    timer: Option<Running>,
    /// The time of the last event.
    last: Nanos,
    /// A late wake-up whose stack may follow.
    pub(crate) late: Option<Window>,
    /// The last stack of a task that was switched out: when, and which.
    pub(crate) switched_out: Option<(Nanos, u32, Vec<u64>)>,
}

/// How an interrupt that is being handled began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// With an event of its own.
    Reported,
    /// With an event that came in it.
    Inferred,
}

/// The callback of a timer that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    expiry: Option<Expiry>,
    in_softirq: bool,
    /// Whether it wakes one task only, at once.
    wakes_one: bool,
}

impl Cpu {
    /// The current task, if it is known.
    pub(crate) fn current(&self) -> Option<Task> {
        self.current
    }

    /// Whether what it did is known from this moment on.
    pub(crate) fn is_known_since(&self, moment: Nanos) -> bool {
        self.current.is_some() && self.known_since <= moment
    }

    /// Events are missing: what it does is unknown until the next context switch.
    pub(crate) fn forget(&mut self) {
        let (last, late) = (self.last, self.late.take());
        *self = Cpu { last, late, ..Cpu::default() };
    }

    /// The current task changes.
    pub(crate) fn switch(&mut self, at: Nanos, (prev, next): (Task, Task), preempted: bool) {
        if self.current.is_none() {
            self.known_since = at;
        }
        self.current = Some(prev);
        self.push(at, EventKind::Switch { next, preempted });
        self.current = Some(next);
        (self.interrupt, self.timer, self.in_softirq) = (None, None, false);
    }

    /// The priority of the current task changes, if it is this one.
    pub(crate) fn change_priority(&mut self, pid: u32, prio: i16) {
        if let Some(task) = self.current.as_mut().filter(|task| task.pid == pid) {
            task.prio = prio;
        }
    }

    /// Adds an event, if the current task is known.
    pub(crate) fn push(&mut self, at: Nanos, kind: EventKind) {
        let Some(task) = self.current else { return };
        if self.events.len() == KEPT {
            self.events.pop_front();
            self.known_since = self.known_since.max(self.events.front().map_or(at, |one| one.at));
        }
        // Clocks of tracers may go back by a little between two events.
        let at = at.max(self.events.back().map_or(at, |last| last.at));
        self.events.push_back(Event { at, task, kind, stolen: Nanos(0) });
    }

    /// An event comes in this context: interrupts and softirqs may have begun and ended without an event. `begins` says
    /// whether it is the begin of an interrupt, and `wakes` whether it may belong to the callback of a timer.
    pub(crate) fn observe(
        &mut self,
        at: Nanos,
        context: Option<Context>,
        (begins, wakes): (bool, bool),
    ) {
        let is_of_timer = wakes && self.timer.is_some();
        if self.interrupt == Some(Open::Inferred) && !is_of_timer {
            // What comes after the last event in it may be anything, another interrupt too.
            self.end_interrupt(self.last + Nanos(1));
        }
        if let Some(context) = context {
            if self.interrupt.is_some() && !context.in_interrupt {
                self.end_interrupt(self.last);
            }
            if context.in_interrupt && self.interrupt.is_none() && !begins {
                self.begin_interrupt(at, Line::Unknown, InterruptedContext::default());
                self.interrupt = Some(Open::Inferred);
            }
        }
        self.last = at;
    }

    /// An interrupt begins. Where preemption was disabled, it interrupted the kernel.
    pub(crate) fn interrupt(&mut self, at: Nanos, line: Line, context: Option<Context>) {
        let is_kernel = context.is_some_and(|context| context.depth > 0);
        let context =
            if is_kernel { InterruptedContext::UNNAMED } else { InterruptedContext::default() };
        self.begin_interrupt(at, line, context);
    }

    fn begin_interrupt(&mut self, at: Nanos, line: Line, context: InterruptedContext) {
        self.interrupt = Some(Open::Reported);
        self.push(at, EventKind::Interrupt { line, context });
    }

    /// The interrupt ends.
    pub(crate) fn end_interrupt(&mut self, at: Nanos) {
        self.interrupt = None;
        self.timer = self.timer.filter(|timer| timer.in_softirq);
        self.push(at, EventKind::InterruptEnd);
    }

    /// A softirq begins, or ends.
    pub(crate) fn softirq(&mut self, at: Nanos, number: Option<u8>) {
        self.in_softirq = number.is_some();
        self.timer = None;
        self.push(at, number.map_or(EventKind::SoftirqEnd, EventKind::Softirq));
    }

    /// The callback of a timer begins. Outside of softirqs it implies the timer's interrupt.
    pub(crate) fn timer(
        &mut self,
        at: Nanos,
        (function, name): (u64, &str),
        expiry: Option<Expiry>,
        context: Option<Context>,
    ) {
        if self.interrupt.is_none() && !self.in_softirq {
            self.interrupt(at, Line::Timer, context);
            self.interrupt = Some(Open::Inferred);
        }
        let in_softirq = self.in_softirq && self.interrupt.is_none();
        self.timer = Some(Running { expiry, in_softirq, wakes_one: name == "hrtimer_wakeup" });
        let due = expiry.map_or(at, |expiry| expiry.expiry);
        self.push(at, EventKind::Timer { function, due });
    }

    /// The callback ends, and with it an interrupt that only it showed.
    pub(crate) fn end_timer(&mut self, at: Nanos) {
        self.timer = None;
        self.push(at, EventKind::TimerEnd);
        if self.interrupt == Some(Open::Inferred) {
            self.end_interrupt(at);
        }
    }

    /// When the timer was due whose callback wakes a task now; none where no callback does.
    pub(crate) fn waking_timer(&mut self) -> Option<Expiry> {
        let timer = self.timer?;
        if timer.in_softirq && self.interrupt.is_some() {
            return None;
        }
        // Where no event tells of the end of a callback, a later wake-up does not belong to it.
        self.timer = self.timer.filter(|timer| !timer.wakes_one);
        timer.expiry
    }

    /// The stack of a wake-up in an interrupt shows what that interrupted.
    pub(crate) fn name_interrupted(&mut self, context: InterruptedContext) {
        let last = self.events.iter_mut().rev().find_map(|event| match &mut event.kind {
            EventKind::Interrupt { context, .. } => Some(context),
            _ => None,
        });
        if let Some(known) = last {
            *known = context;
        }
    }

    /// Whether an interrupt is being handled.
    pub(crate) fn is_in_interrupt(&self) -> bool {
        self.interrupt.is_some()
    }

    /// The events from before `due` until `end`.
    pub(crate) fn events(&self, due: Nanos, end: Nanos) -> Vec<Event> {
        let until = self.events.partition_point(|event| event.at <= end);
        let before = self.events.partition_point(|event| event.at <= due).min(until);
        let is_switch = |event: &Event| matches!(event.kind, EventKind::Switch { .. });
        let switch = (0..before).rev().find(|nth| is_switch(&self.events[*nth]));
        let first = switch.unwrap_or(before).saturating_sub(BEFORE);
        self.events.range(first..until).copied().collect()
    }
}
