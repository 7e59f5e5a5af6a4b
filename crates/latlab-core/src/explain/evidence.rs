//! What a window says beyond its stretches: the questions that causes ask.

use super::stretch::{Phase, Stretch};
use super::{Event, Line, Upon, What, Window};
use crate::time::Nanos;

impl Stretch {
    /// What happened on the CPU of this stretch, before and after it.
    pub fn events<'a>(&self, window: &'a Window) -> &'a [Event] {
        if self.phase <= Phase::Due { window.before_waking() } else { &window.events }
    }

    /// The interrupt that came next on the same CPU, while the wake-up was in the same phase; what
    /// it came upon, and when.
    pub fn next_interrupt(&self, window: &Window) -> Option<(Nanos, Line, Upon)> {
        let end = if self.phase <= Phase::Due { window.waking } else { window.ran };
        let events = self.events(window);
        let after = &events[events.partition_point(|event| event.at < self.to)..];
        let found = after.iter().take_while(|event| event.at <= end).find_map(interrupt);
        found.filter(|_| self.doing.interrupt.is_none())
    }

    /// Whether the callback that runs here is the one that wakes the task.
    pub fn is_in_waking_callback(&self, window: &Window) -> bool {
        let elsewhere = self.phase > Phase::Due && window.waker_cpu != window.cpu;
        if elsewhere || self.phase > Phase::Runnable {
            return false;
        }
        let events = window.before_waking();
        let begin =
            |event: &Event| matches!(event.what, What::Timer { .. } | What::Callback { .. });
        let end = |event: &Event| matches!(event.what, What::TimerEnd | What::CallbackEnd);
        let until = |moment| &events[..events.partition_point(|event| event.at <= moment)];
        let at_waking = until(window.waking).iter().rposition(begin);
        let at_stretch = until(self.from).iter().rposition(begin);
        let Some(callback) = at_waking.filter(|_| at_waking == at_stretch) else { return false };
        !until(window.waking)[callback..].iter().any(end)
    }
}

impl Window {
    /// What happened until the waking on the CPU that woke the task.
    pub fn before_waking(&self) -> &[Event] {
        if self.waker_cpu == self.cpu { &self.events } else { &self.elsewhere }
    }

    /// The interrupt whose handler woke the task; none where a task or a softirq did.
    pub fn woken_by(&self) -> Option<Line> {
        let mut handler = None;
        for event in self.before_waking().iter().take_while(|event| event.at <= self.waking) {
            match event.what {
                What::Interrupt { line, .. } => handler = Some(line),
                // Without its interrupt's own event, a timer's callback tells of it.
                What::Timer { .. } => handler = handler.or(Some(Line::Timer)),
                What::InterruptEnd | What::Softirq(_) | What::Switch { .. } => handler = None,
                _ => {}
            }
        }
        handler
    }

    /// Whether a timer of the task, and nothing else, could wake it.
    pub fn waits_for_timer(&self) -> bool {
        self.expiry > self.due || self.woken_by() == Some(Line::Timer)
    }

    /// The functions that the waking interrupt came upon, the innermost first. None where it came
    /// upon a program, or where the stack does not show the place.
    pub fn interrupted(&self, upon: Upon) -> Vec<u64> {
        if upon.user || upon.ip == 0 {
            return Vec::new();
        }
        match self.waking_stack.iter().position(|address| *address == upon.ip) {
            Some(place) => self.waking_stack[place..].to_vec(),
            None => vec![upon.ip],
        }
    }

    /// From when the task stood on the queue of the CPU on which it then ran.
    pub fn queued(&self) -> Nanos {
        let on_this_cpu = |event: &&Event| match event.what {
            What::Queued { pid, cpu } => pid == self.task.pid && cpu == self.cpu,
            What::Migrated { pid, cpu } => pid == self.task.pid && cpu == self.cpu,
            _ => false,
        };
        let all = self.events.iter().chain(&self.elsewhere).filter(on_this_cpu);
        let queued = all.map(|event| event.at).filter(|at| *at <= self.switched).max();
        queued.map_or(self.waking, |at| at.max(self.waking))
    }

    /// The last interrupt that came upon this CPU before `moment`, since the task was due.
    pub fn last_interrupt(&self, moment: Nanos) -> Option<Upon> {
        let since = self.events.iter().filter(|event| event.at <= moment && event.at >= self.due);
        since.filter_map(interrupt).last().map(|(_, _, upon)| upon)
    }
}

fn interrupt(event: &Event) -> Option<(Nanos, Line, Upon)> {
    match event.what {
        What::Interrupt { line, upon } => Some((event.at, line, upon)),
        _ => None,
    }
}
