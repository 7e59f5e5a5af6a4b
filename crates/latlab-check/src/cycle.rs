//! Cycles of a thread: their period, their times and their parts.

use super::breach::Held;
use super::event::{StackId, Stopper};
use super::marks::Marks;
use super::rule::Rule;
use super::wake_up::WakeUp;
use latlab_core::time::Nanos;
use std::collections::VecDeque;

/// A cycle in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cycle {
    /// When it was due: the time it waited for, or its waking.
    pub(super) due: Nanos,
    /// When it was due and the thread waited for it; later than `due` if the cycle before had not
    /// ended by then.
    pub(super) waited: Nanos,
    /// When its wait returned.
    pub(super) start: Nanos,
    /// Time for which the thread was not on its CPU.
    pub(super) away: Nanos,
    /// Number of its page faults whose end was not reported.
    pub(super) faults_without_end: u64,
    /// Consumers of its time besides the program, in order of their ends.
    pub(super) parts: Vec<Part>,
    /// Its parts by the marks of the program.
    pub(super) marks: Marks,
}

/// A part of a cycle while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// When it began.
    pub(super) from: Nanos,
    /// When it ended.
    pub(super) to: Nanos,
    /// Its time without the parts within it.
    pub(super) own: Nanos,
    /// Its kind.
    pub(super) what: What,
    /// The rule that it breached.
    pub(super) rule: Option<Rule>,
    /// The user stack.
    pub(super) stack: Option<StackId>,
}

/// The kind of a part of a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Another task had the CPU.
    Preempted(Held),
    /// A lower-priority task had it.
    Throttled(Held),
    /// The thread slept there; this task ended that.
    Blocked(String, Option<Held>),
    /// Something from outside stopped it.
    Stopped(Stopper),
    /// It waited for a spinlock of the kernel.
    KernelLock,
    /// A page fault.
    Fault(String),
    /// A system call.
    Call(String),
}

/// A finished cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Finished {
    /// Its number, from 0.
    pub(super) number: u64,
    /// The cycle.
    pub(super) cycle: Cycle,
    /// When the thread waited again.
    pub(super) end: Nanos,
    /// The explained wake-ups of the thread in it.
    pub(super) wake_ups: Vec<WakeUp>,
}

/// Largest number of parts of a cycle that are kept. The time of others is the program's.
const PARTS: usize = 1000;

impl Cycle {
    pub(super) fn add(&mut self, part: Part) {
        if self.parts.len() < PARTS && part.to > part.from {
            self.parts.push(part);
        }
    }
}

impl Finished {
    /// From when it was due until its wait returned.
    pub(super) fn latency(&self) -> Nanos {
        self.cycle.start - self.cycle.due
    }

    /// From when it was due until the thread waited again.
    pub(super) fn response(&self) -> Nanos {
        self.end - self.cycle.due
    }

    /// Time on the CPU.
    pub(super) fn running(&self) -> Nanos {
        (self.end - self.cycle.start) - self.cycle.away
    }

    /// Keeps a wake-up if the thread was awake by it in this cycle.
    pub(super) fn add(&mut self, wake_up: &WakeUp) {
        if wake_up.ran < self.end && wake_up.slept >= self.cycle.start {
            self.wake_ups.push(wake_up.clone());
        }
    }
}

/// The last periods of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Periods {
    recent: VecDeque<Nanos>,
    /// The same, the shortest first.
    sorted: Vec<Nanos>,
}

/// Largest number of periods whose median is taken.
const RECENT: usize = 1000;

impl Periods {
    pub(super) fn add(&mut self, period: Nanos) {
        if self.recent.len() == RECENT
            && let Some(oldest) = self.recent.pop_front()
            && let Ok(place) = self.sorted.binary_search(&oldest)
        {
            self.sorted.remove(place);
        }
        self.recent.push_back(period);
        let place = self.sorted.partition_point(|known| *known < period);
        self.sorted.insert(place, period);
    }

    /// The median.
    pub(super) fn median(&self) -> Option<Nanos> {
        self.sorted.get(self.sorted.len().saturating_sub(1) / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_of_a_thread_that_changes_it_is_the_new_one() {
        let mut periods = Periods::default();
        assert_eq!(periods.median(), None);
        (0..20_000).for_each(|nth| periods.add(Nanos(1_000_000 + nth)));
        (0..20_000).for_each(|nth| periods.add(Nanos(2_000_000 + nth % 3)));
        assert_eq!(periods.median(), Some(Nanos(2_000_001)));
    }

    #[test]
    fn period_is_the_lower_median() {
        let mut periods = Periods::default();
        for period in [4, 1, 3, 2] {
            periods.add(Nanos(period));
        }
        assert_eq!(periods.median(), Some(Nanos(2)));
    }
}
