//! Evidence in a window beyond its segments, as causes need it.

use super::segment::{Activity, Phase, Segment, segments};
use super::{Event, EventKind, InterruptedContext, Line, Task, Window};
use crate::time::Nanos;

/// The longest time from the end of a handler to the next one if that has been pending, or to the
/// switch if the kernel goes straight to the scheduler; in a guest too.
pub const AT_ONCE: Nanos = Nanos::from_micros(10);

/// An interrupt that a segment waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its source.
    pub line: Line,
    /// The context it interrupted.
    pub context: InterruptedContext,
    /// Its delay since the CPU could have taken it: since the task was due or woken, and since the
    /// end of the handler before.
    pub late: Nanos,
    /// Lower bound of the time stolen by the hypervisor within that delay.
    pub stolen: Nanos,
}

impl Segment {
    /// Returns all events on the CPU of this segment, before and after it.
    pub fn events<'a>(&self, window: &'a Window) -> &'a [Event] {
        window.events_on(self.cpu)
    }

    /// Returns the next interrupt on the same CPU, before the task is woken or while it is on the same
    /// run queue. None within an interrupt, where no other can be taken.
    pub fn next_interrupt(&self, window: &Window) -> Option<Arrival> {
        let (begin, end) = match self.queue(window) {
            Some(queue) => (queue.from, queue.until),
            None => (window.expiry.max(window.due), window.waking),
        };
        let events = self.events(window);
        let (before, after) = events.split_at(events.partition_point(|event| event.at < self.to));
        let after = &after[..after.partition_point(|event| event.at <= end)];
        let place = after.iter().position(|event| interrupt(event).is_some());
        let place = place.filter(|_| self.activity.interrupt.is_none())?;
        let (at, line, context) = interrupt(&after[place])?;
        let context =
            if context.ip == 0 && at >= begin { infer_from_next(&after[place..]) } else { context };
        let handled = before.iter().filter(|event| event.kind == EventKind::InterruptEnd);
        let free = handled.map(|event| event.at).filter(|at| *at <= self.from).max();
        let since = free.unwrap_or_default().max(begin);
        let stolen = window.stolen_between(events, since, at);
        Some(Arrival { line, context, late: at - since, stolen })
    }

    /// Whether it lies in the handler of the timer interrupt.
    pub fn is_in_timer_interrupt(&self) -> bool {
        self.activity.interrupt.is_some_and(|(line, _)| line == Line::Timer)
    }

    /// When its CPU got to know that the task is runnable, if that was reported.
    fn ready(&self, window: &Window) -> Option<Nanos> {
        self.queue(window)?.since
    }

    /// Whether the timer callback that runs here wakes the task.
    pub fn is_in_waking_callback(&self, window: &Window) -> bool {
        if self.cpu != Some(window.waker_cpu) || self.phase > Phase::Runnable {
            return false;
        }
        let events = window.before_waking();
        let begin = |event: &Event| {
            matches!(event.kind, EventKind::Timer { .. } | EventKind::Callback { .. })
        };
        let end =
            |event: &Event| matches!(event.kind, EventKind::TimerEnd | EventKind::CallbackEnd);
        let until = |moment| &events[..events.partition_point(|event| event.at <= moment)];
        let at_waking = until(window.waking).iter().rposition(begin);
        let at_segment = until(self.from).iter().rposition(begin);
        let Some(callback) = at_waking.filter(|_| at_waking == at_segment) else { return false };
        !until(window.waking)[callback..].iter().any(end)
    }
}

impl Window {
    /// Returns the events on the CPU that woke the task, until the waking.
    pub fn before_waking(&self) -> &[Event] {
        if self.waker_cpu == self.cpu { &self.events } else { &self.elsewhere }
    }

    /// Returns the interrupt whose handler woke the task; none where a task or a softirq woke it.
    pub fn woken_by(&self) -> Option<Line> {
        let mut handler = None;
        let mut in_softirq = false;
        for event in self.before_waking().iter().take_while(|event| event.at <= self.waking) {
            match event.kind {
                EventKind::Interrupt { line, .. } => handler = Some(line),
                // A timer callback implies the timer interrupt, whose own event may be missing.
                EventKind::Timer { .. } if !in_softirq => handler = handler.or(Some(Line::Timer)),
                EventKind::InterruptEnd => handler = None,
                EventKind::Softirq(_) | EventKind::SoftirqEnd | EventKind::Switch { .. } => {
                    handler = None;
                    in_softirq = matches!(event.kind, EventKind::Softirq(_));
                }
                _ => {}
            }
        }
        handler
    }

    /// Whether a task woke this one by a system call, without an interrupt or a softirq on top of
    /// it.
    pub fn was_woken_by_task(&self) -> bool {
        let activity = Activity::at(self.waking, self.before_waking());
        activity.interrupt.is_none() && activity.timer.is_none() && activity.softirq.is_none()
    }

    /// Whether a timer woke the task: from the timer interrupt, or from a softirq or thread that
    /// this interrupt started.
    pub fn waits_for_timer(&self) -> bool {
        let until = self.before_waking().iter().take_while(|event| event.at <= self.waking);
        let came = until.filter_map(|event| match event.kind {
            EventKind::Interrupt { line, .. } => Some(line),
            EventKind::Timer { .. } => Some(Line::Timer),
            _ => None,
        });
        self.expiry > self.due || came.last() == Some(Line::Timer)
    }

    /// Returns the kernel functions that the waking interrupt interrupted, innermost first: none in
    /// user mode, and only the instruction pointer where the stack does not contain it.
    pub fn interrupted(&self, context: InterruptedContext) -> Vec<u64> {
        if context.user || context.ip == 0 || context == InterruptedContext::UNNAMED {
            return Vec::new();
        }
        match self.waking_stack.iter().position(|address| *address == context.ip) {
            Some(place) => self.waking_stack[place..].to_vec(),
            None => vec![context.ip],
        }
    }

    /// Whether another task has the CPU in a segment although this one is runnable after it ran: it
    /// was preempted, or woken from the wait for a lock.
    pub fn is_preempted(&self, segment: &Segment) -> bool {
        let is_own = |task: Task| task.pid == self.task.pid;
        let events = segment.events(self);
        let until = &events[..events.partition_point(|event| event.at <= segment.from)];
        let is_runnable = until.iter().rev().find_map(|event| match event.kind {
            EventKind::Switch { preempted, .. } if is_own(event.task) => Some(preempted),
            EventKind::LockReleased { pid } if pid == self.task.pid => Some(true),
            _ => None,
        });
        !segment.activity.task.is_some_and(is_own) && is_runnable == Some(true)
    }

    /// Returns when the task was put on the run queue of the CPU it then ran on, if that was
    /// reported.
    pub fn queued(&self) -> Option<Nanos> {
        self.queues().last().and_then(|queue| queue.since)
    }

    /// Whether the CPU had switched to another task before the segment although this one was on its
    /// run queue.
    pub fn was_passed_over(&self, segment: &Segment) -> bool {
        segment.ready(self).is_some_and(|queued| {
            let since = segment.events(self).iter();
            let since = since.filter(|event| event.at > queued && event.at <= segment.from);
            { since }.any(|event| matches!(event.kind, EventKind::Switch { .. }))
        })
    }

    /// Whether the CPU returned to user mode of a task of lower priority, and was there after the
    /// segment, although this task was on its run queue. Evidence is an interrupt that interrupts
    /// user mode: the kernel checks for rescheduling on each return to user mode. After the last one
    /// it is that the kernel did not switch at once.
    pub fn was_left_waiting(&self, segment: &Segment) -> bool {
        // SCHED_OTHER tasks take turns, whatever their nice values.
        let is_left = |task: &Task, context: InterruptedContext| {
            context.user && self.task.is_realtime() && task.prio > self.task.prio
        };
        self.interrupted_meanwhile(segment, is_left)
            || self.interrupted_before(segment, is_left) && self.is_slow_to_switch(segment)
    }

    /// Whether the CPU was idle again after the segment, although this task was on its run queue.
    /// Evidence is an interrupt of the idle task, which checks for rescheduling after each
    /// interrupt.
    pub fn was_left_idle(&self, segment: &Segment) -> bool {
        self.interrupted_meanwhile(segment, |task, _| task.is_idle())
    }

    /// Whether an interrupt from the end of the segment on has interrupted something like this while
    /// the task was on the same run queue.
    fn interrupted_meanwhile(
        &self,
        segment: &Segment,
        is_like_this: impl Fn(&Task, InterruptedContext) -> bool,
    ) -> bool {
        self.interrupts_in_queue(segment)
            .any(|(task, (at, _, context))| at >= segment.to && is_like_this(&task, context))
    }

    /// Whether the last interrupt before the segment has, since the task was on the same run queue.
    fn interrupted_before(
        &self,
        segment: &Segment,
        is_like_this: impl Fn(&Task, InterruptedContext) -> bool,
    ) -> bool {
        let came = self.interrupts_in_queue(segment);
        let last = came.take_while(|(_, (at, ..))| *at < segment.to).last();
        last.is_some_and(|(task, (_, _, context))| is_like_this(&task, context))
    }

    /// The interrupts while the task was on the run queue of the segment, each with the task that
    /// had the CPU. After these interrupts the kernel checks for rescheduling again.
    fn interrupts_in_queue(
        &self,
        segment: &Segment,
    ) -> impl Iterator<Item = (Task, (Nanos, Line, InterruptedContext))> {
        let queue = segment.queue(self).and_then(|queue| Some((queue, queue.since?)));
        let events = queue.map_or(&[][..], |_| segment.events(self)).iter();
        let (ready, until, by_other) = queue.map_or_else(Default::default, |(queue, ready)| {
            (ready, self.switched.min(queue.until), queue.by_other)
        });
        let waiting = events.filter(move |event| event.at > ready);
        let waiting = waiting.take_while(move |event| event.at < until);
        // The first interrupt after another CPU put the task there is the one that makes the kernel
        // check.
        waiting
            .filter_map(|event| Some((event.task, interrupt(event)?)))
            .skip(usize::from(by_other))
    }

    /// Returns the context of the last interrupt on the segment's CPU before it since the task was
    /// due, or of the one handled when it was due. An interrupt of unknown context takes the
    /// context of the last interrupt with a known one, if the task was runnable when the handler of
    /// that interrupt ended: the kernel can't have returned to user mode in between.
    pub fn last_interrupt(&self, segment: &Segment) -> Option<InterruptedContext> {
        let events = segment.events(self);
        let until = &events[..events.partition_point(|event| event.at <= segment.from)];
        let since: Vec<_> = until.iter().filter(|event| event.at >= self.due).collect();
        let mut came = since.iter().filter_map(|event| interrupt(event));
        let last = came.clone().next_back().map(|(_, _, context)| context);
        let Some(last) = last else {
            return Activity::at(self.due, events).interrupt.map(|(_, context)| context);
        };
        let known = came.rfind(|(_, _, context)| context.ip != 0);
        let Some((at, _, context)) = known.filter(|_| last.ip == 0) else { return Some(last) };
        let handled = until.iter().find(|e| e.at >= at && e.kind == EventKind::InterruptEnd);
        let ready = segment.ready(self);
        let lasts = ready.zip(handled).is_some_and(|(ready, end)| end.at >= ready);
        Some(if lasts { context } else { last })
    }

    /// Whether the segment's CPU took longer than [`AT_ONCE`] to switch, from the end of the last
    /// handler or softirq before the segment. Interrupts, softirqs and stolen time since then do not
    /// count: in the rest, the kernel was working for the current task.
    pub fn is_slow_to_switch(&self, segment: &Segment) -> bool {
        let events = segment.events(self);
        let until = &events[..events.partition_point(|event| event.at <= segment.from)];
        let end =
            |event: &&Event| matches!(event.kind, EventKind::InterruptEnd | EventKind::SoftirqEnd);
        let handled = until.iter().rfind(end).map_or(segment.from, |event| event.at);
        let all = segments(self);
        let own = all.iter().filter(|part| {
            let on_top = part.activity.interrupt.is_some() || part.activity.softirq.is_some();
            let is_here = part.phase == Phase::Runnable && part.cpu == segment.cpu;
            is_here && part.from >= handled && !on_top && !part.stolen
        });
        own.fold(Nanos(0), |sum, part| sum + part.length()) > AT_ONCE
    }
}

/// The context of the first of these events, an interrupt that does not report its context. The
/// timer interrupt after it has the same context if it was taken at once and was due before the
/// first: both were pending.
fn infer_from_next(events: &[Event]) -> InterruptedContext {
    let first = events.first().map(|event| event.at);
    let mut handled = first;
    for (place, event) in events.iter().enumerate() {
        match event.kind {
            EventKind::Interrupt { context, .. } if context.ip == 0 => {}
            EventKind::Interrupt { line, context } => {
                let at_once = handled.is_some_and(|end| event.at - end <= AT_ONCE);
                let due = expired(&events[place + 1..]).filter(|_| line == Line::Timer);
                let waited = due.zip(first).is_some_and(|(due, first)| due <= first);
                return if at_once && waited { context } else { InterruptedContext::default() };
            }
            EventKind::InterruptEnd => handled = Some(event.at),
            _ => break,
        }
    }
    InterruptedContext::default()
}

/// The due time of the first timer whose callback runs in the handler that has just begun.
pub(super) fn expired(events: &[Event]) -> Option<Nanos> {
    let handler = events.iter().take_while(|event| event.kind != EventKind::InterruptEnd);
    { handler }.find_map(|event| match event.kind {
        EventKind::Timer { due, .. } => Some(due),
        _ => None,
    })
}

/// The time, source and context of an interrupt; none for other events.
pub(super) fn interrupt(event: &Event) -> Option<(Nanos, Line, InterruptedContext)> {
    match event.kind {
        EventKind::Interrupt { line, context } => Some((event.at, line, context)),
        _ => None,
    }
}
