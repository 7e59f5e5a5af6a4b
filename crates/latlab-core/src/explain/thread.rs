//! The IRQ or softirq thread that wakes a task, and the interrupt that it waits for.

use super::evidence::{AT_ONCE, expired, interrupt};
use super::segment::{Activity, Phase, Segment};
use super::{Event, EventKind, Task, Window};
use crate::time::Nanos;

/// The IRQ or softirq thread that woke a task, and the events on its CPU until then.
struct Thread<'a> {
    task: Task,
    events: &'a [Event],
    /// The place of the first event since the task was due.
    due: usize,
}

impl<'a> Thread<'a> {
    /// None where a task or a handler woke the task.
    fn waker(window: &'a Window) -> Option<Thread<'a>> {
        let woken_by_thread = window.waker.is_interrupt_thread() && window.woken_by().is_none();
        let events = window.before_waking();
        let events = &events[..events.partition_point(|event| event.at <= window.waking)];
        let due = events.partition_point(|event| event.at < window.expiry.max(window.due));
        woken_by_thread.then_some(Thread { task: window.waker, events, due })
    }

    /// Since when it was runnable and waited for nothing else; 0 if that is not known. A wake-up
    /// that is not by an interrupt ends its wait for a lock, such as the lock of softirqs on
    /// `PREEMPT_RT`.
    fn runnable(&self) -> Nanos {
        let before = (0..self.due).rfind(|place| self.is_woken(*place) || self.sleeps(*place));
        let mut woken = (self.due..self.events.len()).filter(|place| self.is_woken(*place));
        let since = before
            .filter(|place| self.is_pending(*place))
            .or_else(|| woken.clone().rfind(|place| self.is_woken_by_interrupt(*place)))
            .or_else(|| woken.next())
            .or(before);
        since.map(|place| self.events[place].at).unwrap_or_default()
    }

    /// Whether it is woken here, and still waits for the CPU when the task is due.
    fn is_pending(&self, woken: usize) -> bool {
        self.is_woken(woken) && !(woken..self.due).any(|place| self.is_switched_to(place))
    }

    /// Whether it is woken here by a handler, or on the way out of one.
    fn is_woken_by_interrupt(&self, woken: usize) -> bool {
        let before = woken.checked_sub(1).map(|before| self.events[before].kind);
        before == Some(EventKind::InterruptEnd)
            || Activity::at(self.events[woken].at, self.events).interrupt.is_some()
    }

    fn is_woken(&self, place: usize) -> bool {
        matches!(self.events[place].kind, EventKind::Waking { task, .. } if self.is_it(task))
    }

    fn sleeps(&self, place: usize) -> bool {
        let event = &self.events[place];
        self.is_it(event.task) && matches!(event.kind, EventKind::Switch { preempted: false, .. })
    }

    fn is_switched_to(&self, place: usize) -> bool {
        matches!(self.events[place].kind, EventKind::Switch { next, .. } if self.is_it(next))
    }

    fn is_it(&self, task: Task) -> bool {
        task.pid == self.task.pid
    }
}

impl Window {
    /// Returns since when the IRQ or softirq thread that woke the task was runnable: its interrupt
    /// has been handled, and only the thread was waited for. 0 where that is not known, none where no
    /// such thread woke the task.
    pub fn thread_runnable(&self) -> Option<Nanos> {
        Thread::waker(self).map(|thread| thread.runnable())
    }

    /// Whether the task is due, and its interrupt has not come. Where an IRQ or softirq thread woke
    /// it, the interrupt has come when that thread is woken; or, if it was runnable before, with the
    /// first interrupt. None comes where the first is on time for a timer of its own: while the
    /// softirq of timers is pending, Linux programs no interrupt for more of them
    /// (`softirq_activated` in kernel/time/hrtimer.c).
    pub fn waits_for_interrupt(&self, segment: &Segment) -> bool {
        segment.phase == Phase::Due
            && match self.thread_runnable() {
                None => true,
                Some(since) if since > self.due => segment.from < since,
                Some(_) => {
                    self.first_interrupt().is_none_or(|(at, is_own)| segment.from < at && !is_own)
                }
            }
    }

    /// Returns when the first interrupt came since the task was due, and whether it was programmed
    /// for a timer that was due well after the task, and came on time.
    fn first_interrupt(&self) -> Option<(Nanos, bool)> {
        let events = self.before_waking();
        let came = |event: &Event| interrupt(event).is_some() && event.at >= self.due;
        let place = events.iter().position(came)?;
        let at = events[place].at;
        let is_own = |timer: Nanos| timer - self.due > AT_ONCE && at - timer <= AT_ONCE;
        Some((at, expired(&events[place + 1..]).is_some_and(is_own)))
    }
}
