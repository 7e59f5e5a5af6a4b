//! Interrupts of runs, and how many of them can meet within a window.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The function at which the processor enters the kernel.
    pub name: String,
    /// When it began, in the guest's time.
    pub begin: Nanos,
    /// When it returned or called the scheduler.
    pub end: Nanos,
    /// Its instructions, with the softirqs that it ran, without interrupts within it.
    pub own: Nanos,
}

/// The interrupts of one vector that can meet within a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vector {
    /// The function at which the processor enters the kernel.
    pub name: String,
    /// The longest one.
    pub ns: Nanos,
    /// How many of them met within the window, at most.
    pub times: u64,
}

impl Vector {
    /// Returns the time that they take together.
    pub fn total(&self) -> Nanos {
        Nanos(self.ns.0 * self.times)
    }
}

/// Returns the interrupts that can meet within a window of this length, those that take longest in
/// all first. The interrupts of each run are in the order in which they ended.
pub(super) fn within(runs: &[&[Interrupt]], window: Nanos) -> Vec<Vector> {
    let mut vectors: BTreeMap<&str, Vector> = BTreeMap::new();
    for run in runs {
        let mut of_run: BTreeMap<&str, Vec<&Interrupt>> = BTreeMap::new();
        for interrupt in *run {
            of_run.entry(&interrupt.name).or_default().push(interrupt);
        }
        for (name, interrupts) in of_run {
            let none = || Vector { name: name.to_owned(), ns: Nanos(0), times: 0 };
            let vector = vectors.entry(name).or_insert_with(none);
            let longest = interrupts.iter().map(|interrupt| interrupt.own).max();
            vector.ns = vector.ns.max(longest.unwrap_or_default());
            vector.times = vector.times.max(most_within(&interrupts, window));
        }
    }
    let mut vectors: Vec<Vector> = vectors.into_values().collect();
    vectors.sort_by(|a, b| (b.total(), &a.name).cmp(&(a.total(), &b.name)));
    vectors
}

/// The largest number of interrupts of one vector, which do not nest, that overlap a window.
fn most_within(interrupts: &[&Interrupt], window: Nanos) -> u64 {
    let (mut most, mut after) = (0, 0);
    for (first, interrupt) in interrupts.iter().enumerate() {
        let last = interrupt.end + window;
        while interrupts.get(after).is_some_and(|next| next.begin <= last) {
            after += 1;
        }
        most = most.max(after.saturating_sub(first));
    }
    most as u64
}
