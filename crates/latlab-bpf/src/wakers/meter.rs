//! What the wakers have counted, for threads that do not take wake-ups: the one that does never
//! waits for them.

use crate::object::number;
use latlab_core::mechanism::watching::{Programs, Task, Violation, Violations};
use latlab_core::time::Nanos;
use libbpf_rs::MapHandle;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Can be read at any time, by any thread.
#[derive(Clone, Debug)]
pub struct Meter {
    violations: Arc<MapHandle>,
    spent: Arc<Spent>,
}

/// Nanoseconds.
#[derive(Debug, Default)]
struct Spent {
    /// For how long runs were counted, as far as that has ended.
    counted: AtomicU64,
    /// What they took meanwhile.
    taken: AtomicU64,
}

impl Meter {
    pub(super) fn of(violations: MapHandle) -> Meter {
        Meter { violations: Arc::new(violations), spent: Arc::default() }
    }

    /// Runs were counted for so long since the start, and took so much more than before.
    pub(super) fn add(&self, counted: Nanos, taken: Nanos) {
        self.spent.counted.store(counted.0, Relaxed);
        self.spent.taken.fetch_add(taken.0, Relaxed);
    }

    /// Whether there is another than this one.
    pub(super) fn is_read(&self) -> bool {
        Arc::strong_count(&self.spent) > 1
    }

    /// What violated the rule since the start. Tasks are without their names.
    pub fn violations(&self) -> Violations {
        let [by_interrupts, by_others] = [0, 16].map(|at| number(&self.violations, at));
        let [last_by_interrupt, last_by_other] =
            [8, 24].map(|at| violation(number(&self.violations, at)));
        Violations { by_interrupts, by_others, last_by_interrupt, last_by_other }
    }

    /// What the programs cost, as counted in the first second and in one of each minute; none before
    /// the first has ended, and where runs can't be counted.
    pub fn programs(&self) -> Option<Programs> {
        let [counted, taken] =
            [&self.spent.counted, &self.spent.taken].map(|ns| Nanos(ns.load(Relaxed)));
        (counted > Nanos(0)).then_some(Programs { counted, taken })
    }
}

/// Who woke whom, as the kernel's side keeps it: 0 before there was any.
fn violation(last: u64) -> Option<Violation> {
    let task = |id: u64| Task { id: i32::try_from(id).unwrap_or_default(), name: None };
    let (waker, woken) = (last >> 32, last & u64::from(u32::MAX));
    (last != 0).then(|| Violation { waker: task(waker), woken: task(woken) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violation_has_waker_in_upper_half() {
        let found = violation(7 << 32 | 9).map(|one| (one.waker.id, one.woken.id));
        assert_eq!(found, Some((7, 9)));
        assert_eq!(violation(0), None);
    }
}
