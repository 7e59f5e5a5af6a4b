//! Counts of the wakers for other threads, which never block the thread that takes wake-ups.

use crate::object::read_u64;
use latlab_core::time::Nanos;
use latlab_mechanism::violations::{BpfCost, NamedTask, Violation, Violations};
use libbpf_rs::MapHandle;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of [`Wakers`](super::Wakers) that any thread can read at any time.
#[derive(Clone, Debug)]
pub struct WakerCounters {
    violations: Arc<MapHandle>,
    cost: Arc<TotalCost>,
}

/// Cost of the programs, in nanoseconds.
#[derive(Debug, Default)]
struct TotalCost {
    /// Time for which runs were counted, without the count in progress.
    counted: AtomicU64,
    /// Time of these runs.
    runs: AtomicU64,
}

impl WakerCounters {
    pub(super) fn of(violations: MapHandle) -> WakerCounters {
        WakerCounters { violations: Arc::new(violations), cost: Arc::default() }
    }

    /// Adds a count: `counted` is the total counting time since the start, `taken` the time of the
    /// runs in this count.
    pub(super) fn add(&self, counted: Nanos, taken: Nanos) {
        self.cost.counted.store(counted.0, Relaxed);
        self.cost.runs.fetch_add(taken.0, Relaxed);
    }

    /// Whether there is a clone of this.
    pub(super) fn is_read(&self) -> bool {
        Arc::strong_count(&self.cost) > 1
    }

    /// Wake-ups by lower-priority tasks since the start. The tasks have no names.
    pub fn violations(&self) -> Violations {
        let [by_interrupts, by_others] = [0, 16].map(|at| read_u64(&self.violations, at));
        let [last_by_interrupt, last_by_other] =
            [8, 24].map(|at| violation(read_u64(&self.violations, at)));
        Violations { by_interrupts, by_others, last_by_interrupt, last_by_other }
    }

    /// Cost of the programs, counted in the first second and one second of each minute. None before
    /// the first second has passed, and where runs cannot be counted.
    pub fn programs(&self) -> Option<BpfCost> {
        let [counted, taken] =
            [&self.cost.counted, &self.cost.runs].map(|ns| Nanos(ns.load(Relaxed)));
        (counted > Nanos(0)).then_some(BpfCost { counted, taken })
    }
}

/// The last violation as the BPF program keeps it; 0 before the first.
fn violation(last: u64) -> Option<Violation> {
    let task = |id: u64| NamedTask { id: i32::try_from(id).unwrap_or_default(), name: None };
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
