//! What a window says beyond its stretches: the questions that causes ask.

use super::stretch::{Doing, Phase, Stretch, stretches};
use super::{Event, Line, Upon, What, Window};
use crate::time::Nanos;

/// The longest from the end of a handler to the begin of the next where that has been waiting, or
/// to the switch where the kernel goes straight to the scheduler, in a guest too.
pub const AT_ONCE: Nanos = Nanos::from_micros(10);

/// An interrupt that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Which.
    pub line: Line,
    /// What it came upon.
    pub upon: Upon,
    /// How long after the CPU could be expected to take it: after the task was due or woken, and
    /// after the handler before.
    pub late: Nanos,
    /// How much of that the hypervisor took, at least.
    pub stolen: Nanos,
}

impl Stretch {
    /// What happened on the CPU of this stretch, before and after it.
    pub fn events<'a>(&self, window: &'a Window) -> &'a [Event] {
        if self.phase <= Phase::Due { window.before_waking() } else { &window.events }
    }

    /// The interrupt that came next on the same CPU, while the wake-up had come no further. None
    /// within an interrupt: there no other is to be expected.
    pub fn next_interrupt(&self, window: &Window) -> Option<Arrival> {
        let woken = self.phase > Phase::Due;
        let (begin, end) = if woken {
            (window.waking, window.ran)
        } else {
            (window.expiry.max(window.due), window.waking)
        };
        let events = self.events(window);
        let (before, after) = events.split_at(events.partition_point(|event| event.at < self.to));
        let after = &after[..after.partition_point(|event| event.at <= end)];
        let place = after.iter().position(|event| interrupt(event).is_some());
        let place = place.filter(|_| self.doing.interrupt.is_none())?;
        let (at, line, upon) = interrupt(&after[place])?;
        let upon =
            if upon.ip == 0 && at >= begin { told_by_the_next(&after[place..]) } else { upon };
        let handled = before.iter().filter(|event| event.what == What::InterruptEnd);
        let free = handled.map(|event| event.at).filter(|at| *at <= self.from).max();
        let since = free.unwrap_or_default().max(begin);
        let stolen = window.stolen_between(events, since, at);
        Some(Arrival { line, upon, late: at - since, stolen })
    }

    /// Whether it lies in the handler of the timer's interrupt.
    pub fn is_in_timer_interrupt(&self) -> bool {
        self.doing.interrupt.is_some_and(|(line, _)| line == Line::Timer)
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

    /// Whether it was a task that woke this one, by a call of the kernel: no interrupt and no
    /// softirq on top of it.
    pub fn was_woken_by_task(&self) -> bool {
        let doing = Doing::at(self.waking, self.before_waking());
        doing.interrupt.is_none() && doing.timer.is_none() && doing.softirq.is_none()
    }

    /// Whether it was a timer that woke the task: from its interrupt, or from a softirq or thread
    /// that this set going.
    pub fn waits_for_timer(&self) -> bool {
        let until = self.before_waking().iter().take_while(|event| event.at <= self.waking);
        let came = until.filter_map(|event| match event.what {
            What::Interrupt { line, .. } => Some(line),
            What::Timer { .. } => Some(Line::Timer),
            _ => None,
        });
        self.expiry > self.due || came.last() == Some(Line::Timer)
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

    /// From when the task stood on the queue of the CPU on which it then ran, if that was seen.
    pub fn queued(&self) -> Option<Nanos> {
        let here = |event: &&Event| match event.what {
            What::Queued { pid, cpu } | What::Migrated { pid, cpu } => {
                pid == self.task.pid && cpu == self.cpu
            }
            _ => false,
        };
        let all = self.events.iter().chain(&self.elsewhere).filter(here).map(|event| event.at);
        all.filter(|at| (self.waking..=self.switched).contains(at)).max()
    }

    /// Whether the task was moved to its CPU after it had been woken.
    pub fn was_moved(&self) -> bool {
        let ours = |event: &Event| match event.what {
            What::Migrated { pid, cpu } => pid == self.task.pid && cpu == self.cpu,
            _ => false,
        };
        { self.events.iter().chain(&self.elsewhere) }
            .any(|event| event.at >= self.waking && event.at <= self.switched && ours(event))
    }

    /// Whether the CPU, at `moment`, had gone over to another task although this one stood on its
    /// queue.
    pub fn was_passed_over(&self, moment: Nanos) -> bool {
        let known = self.ready_here();
        known.is_some_and(|queued| {
            let since = self.events.iter().filter(|event| event.at > queued && event.at <= moment);
            { since }.any(|event| matches!(event.what, What::Switch { .. }))
        })
    }

    /// Whether the CPU went back to the program of another task, and was there after `moment`,
    /// although this one stood on its queue. An interrupt that comes upon a program tells: the
    /// kernel looks whom to run each time before it goes back to one.
    pub fn was_left_waiting(&self, moment: Nanos) -> bool {
        let Some(ready) = self.ready_here() else { return false };
        let waiting = self.events.iter().filter(|event| event.at > ready);
        let came = waiting.take_while(|event| event.at < self.switched).filter_map(interrupt);
        // The first after a wake-up from elsewhere is the one that makes the kernel look.
        let unasked = usize::from(self.waker_cpu != self.cpu);
        { came.skip(unasked) }.any(|(at, _, upon)| at >= moment && upon.user)
    }

    /// From when it was known on the CPU on which the task then ran that it can run.
    fn ready_here(&self) -> Option<Nanos> {
        self.queued().or((self.waker_cpu == self.cpu).then_some(self.waking))
    }

    /// The last interrupt that came upon this CPU before `moment`, since the task was due, or that
    /// was handled then. One that does not say what it came upon came upon the same as the one
    /// before, if by then it was known that the task can run: the kernel can't have gone back to a
    /// program in between.
    pub fn last_interrupt(&self, moment: Nanos) -> Option<Upon> {
        let until = &self.events[..self.events.partition_point(|event| event.at <= moment)];
        let since: Vec<_> = until.iter().filter(|event| event.at >= self.due).collect();
        let mut came = since.iter().filter_map(|event| interrupt(event));
        let last = came.clone().next_back().map(|(_, _, upon)| upon);
        let Some(last) = last else {
            return Doing::at(self.due, &self.events).interrupt.map(|(_, upon)| upon);
        };
        let telling = came.rfind(|(_, _, upon)| upon.ip != 0);
        let Some((at, _, upon)) = telling.filter(|_| last.ip == 0) else { return Some(last) };
        let handled = until.iter().find(|e| e.at >= at && e.what == What::InterruptEnd);
        let ready = self.ready_here();
        let lasts = ready.zip(handled).is_some_and(|(ready, end)| end.at >= ready);
        Some(if lasts { upon } else { last })
    }

    /// Whether the CPU took longer than at once to go over to this task, which could run, from the
    /// end of the last handler or softirq until `moment`. What interrupts, softirqs and the
    /// hypervisor took since then does not count: the kernel was at work for whoever was current.
    pub fn is_slow_to_switch(&self, moment: Nanos) -> bool {
        let until = &self.events[..self.events.partition_point(|event| event.at <= moment)];
        let end = |event: &&Event| matches!(event.what, What::InterruptEnd | What::SoftirqEnd);
        let handled = until.iter().rfind(end).map_or(moment, |event| event.at);
        let all = stretches(self);
        let own = all.iter().filter(|part| {
            let on_top = part.doing.interrupt.is_some() || part.doing.softirq.is_some();
            part.phase == Phase::Runnable && part.from >= handled && !on_top && !part.stolen
        });
        own.fold(Nanos(0), |sum, part| sum + part.length()) > AT_ONCE
    }
}

/// What an interrupt that does not say so, the first of these, came upon: the same as the timer's
/// after it, if that came at once and was due before the first, so that it had to wait as well.
fn told_by_the_next(events: &[Event]) -> Upon {
    let first = events.first().map(|event| event.at);
    let mut handled = first;
    for (place, event) in events.iter().enumerate() {
        match event.what {
            What::Interrupt { upon, .. } if upon.ip == 0 => {}
            What::Interrupt { line, upon } => {
                let at_once = handled.is_some_and(|end| event.at - end <= AT_ONCE);
                let due = expired(&events[place + 1..]).filter(|_| line == Line::Timer);
                let waited = due.zip(first).is_some_and(|(due, first)| due <= first);
                return if at_once && waited { upon } else { Upon::default() };
            }
            What::InterruptEnd => handled = Some(event.at),
            _ => break,
        }
    }
    Upon::default()
}

/// When the first timer was due whose callback runs in a handler that has just begun.
fn expired(events: &[Event]) -> Option<Nanos> {
    let handler = events.iter().take_while(|event| event.what != What::InterruptEnd);
    { handler }.find_map(|event| match event.what {
        What::Timer { due, .. } => Some(due),
        _ => None,
    })
}

fn interrupt(event: &Event) -> Option<(Nanos, Line, Upon)> {
    match event.what {
        What::Interrupt { line, upon } => Some((event.at, line, upon)),
        _ => None,
    }
}
