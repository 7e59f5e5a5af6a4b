//! The run queues on which a woken task waited.

use super::segment::Segment;
use super::{Event, EventKind, Window};
use crate::time::Nanos;

/// A move of the task to another CPU while it was on a run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub at: Nanos,
    /// The CPU on whose run queue it was.
    pub from: u32,
    /// The CPU on whose run queue it then was.
    pub to: u32,
}

/// The time that a woken task spent for one CPU, on its run queue or on the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The CPU; none where it is not known.
    pub cpu: Option<u32>,
    /// When it was woken, or moved from the queue before.
    pub from: Nanos,
    /// When it was moved to the next one, or ran.
    pub until: Nanos,
    /// Since when it was on the queue, if that was reported.
    pub since: Option<Nanos>,
    /// Whether another CPU put it there.
    pub by_other: bool,
}

impl Window {
    /// Returns the run queues from when the task was woken until it ran, without gaps.
    pub fn queues(&self) -> Vec<Queue> {
        let woken = self.waking.clamp(self.due, self.ran);
        let cpu = self.moves.first().map_or(Some(self.cpu), |first| Some(first.from));
        let first = Queue {
            cpu: cpu.filter(|_| !self.lacks_moves),
            from: woken,
            until: self.ran,
            since: cpu.and_then(|cpu| self.first_queued(cpu)),
            by_other: cpu != Some(self.waker_cpu),
        };
        let mut queues = vec![first];
        for Move { at, to, .. } in &self.moves {
            let at = (*at).clamp(woken, self.ran);
            if let Some(last) = queues.last_mut() {
                last.until = at;
            }
            queues.push(Queue {
                cpu: Some(*to),
                from: at,
                until: self.ran,
                since: Some(at),
                by_other: true,
            });
        }
        queues
    }

    /// Returns the events on a CPU: empty where they were not kept.
    pub fn events_on(&self, cpu: Option<u32>) -> &[Event] {
        match cpu {
            Some(cpu) if cpu == self.cpu => &self.events,
            Some(cpu) if cpu == self.waker_cpu => &self.elsewhere,
            Some(cpu) if cpu == self.former_cpu => &self.former,
            _ => &[],
        }
    }

    /// When the woken task was put on its first run queue.
    fn first_queued(&self, cpu: u32) -> Option<Nanos> {
        let is_it = |event: &&Event| {
            event.kind == EventKind::Queued { pid: self.task.pid, cpu }
                && (self.waking..=self.switched).contains(&event.at)
        };
        let all = [&self.events, &self.elsewhere, &self.former].into_iter().flatten();
        let reported = all.filter(is_it).map(|event| event.at).max();
        reported.or((cpu == self.waker_cpu).then_some(self.waking))
    }
}

impl Segment {
    /// Returns the run queue on which the task is; none before it is woken.
    pub fn queue(&self, window: &Window) -> Option<Queue> {
        let has = |queue: &Queue| queue.from <= self.from && self.to <= queue.until;
        window.queues().into_iter().find(|queue| self.is_woken() && has(queue))
    }
}
