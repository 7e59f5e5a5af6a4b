//! Times for which something from outside stopped a thread.

use super::cycle::Finished;
use super::event::Stopper;
use super::report::StopsReport;
use latlab_core::time::Nanos;

/// The times for which a thread was stopped since its first cycle began.
#[derive(Debug, Default)]
pub(super) struct Stops {
    count: u64,
    total: Nanos,
    longest: Option<(Nanos, Stopper)>,
    /// The last one: when it began and ended.
    last: Option<(Nanos, Nanos)>,
    /// Whether the cycle before was delayed by one.
    behind: bool,
    /// Cycles that were delayed.
    pub(super) cycles: u64,
}

impl Stops {
    /// The thread runs again.
    pub(super) fn add(&mut self, from: Nanos, to: Nanos, by: Stopper) {
        self.count += 1;
        self.total = self.total + (to - from);
        self.last = Some((from, to));
        if self.longest.is_none_or(|(longest, _)| to - from > longest) {
            self.longest = Some((to - from, by));
        }
    }

    /// Whether a stop delayed a cycle: the stop fell into the cycle, or the cycle began late after
    /// a delayed one.
    pub(super) fn delayed(&mut self, finished: &Finished) -> bool {
        let cycle = &finished.cycle;
        let within = self.last.is_some_and(|(from, to)| from < finished.end && cycle.due < to);
        let inherited = self.behind && cycle.waited > cycle.due;
        self.behind = within || inherited;
        self.cycles += u64::from(self.behind);
        self.behind
    }

    /// The stops for the report; none if there were none.
    pub(super) fn report(&self) -> Option<StopsReport> {
        let (longest, by) = self.longest?;
        let (count, total, cycles) = (self.count, self.total, self.cycles);
        Some(StopsReport { count, total, longest, by: by.describe(), cycles })
    }
}
