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
    /// The time that they take together: the most that was observed within as long a window.
    pub total: Nanos,
    /// How many of them took it.
    pub times: u64,
    /// The longest one of all that were observed.
    pub ns: Nanos,
}

/// Returns the interrupts that can meet within a window of this length, the vector with the longest
/// total first. The interrupts of each run are in the order in which they ended.
pub(super) fn within(runs: &[&[Interrupt]], window: Nanos) -> Vec<Vector> {
    let mut vectors: BTreeMap<&str, Vector> = BTreeMap::new();
    for run in runs {
        let mut of_run: BTreeMap<&str, Vec<&Interrupt>> = BTreeMap::new();
        for interrupt in *run {
            of_run.entry(&interrupt.name).or_default().push(interrupt);
        }
        for (name, interrupts) in of_run {
            let (total, times) = most_within(&interrupts, window);
            let longest = interrupts.iter().map(|interrupt| interrupt.own).max();
            let none = || Vector { name: name.to_owned(), total: Nanos(0), times: 0, ns: Nanos(0) };
            let vector = vectors.entry(name).or_insert_with(none);
            vector.ns = vector.ns.max(longest.unwrap_or_default());
            (vector.total, vector.times) = (vector.total, vector.times).max((total, times));
        }
    }
    let mut vectors: Vec<Vector> = vectors.into_values().collect();
    vectors.sort_by(|a, b| (b.total, &a.name).cmp(&(a.total, &b.name)));
    vectors
}

/// The longest total time of one vector's interrupts that overlap a window of this length, and
/// their number. They do not nest. An interrupt that overlaps the window in part counts whole.
fn most_within(interrupts: &[&Interrupt], window: Nanos) -> (Nanos, u64) {
    let (mut most, mut taken, mut after) = ((Nanos(0), 0), Nanos(0), 0);
    for (first, interrupt) in interrupts.iter().enumerate() {
        let last = interrupt.end + window;
        while let Some(next) = interrupts.get(after).filter(|next| next.begin <= last) {
            taken = taken + next.own;
            after += 1;
        }
        most = most.max((taken, (after - first) as u64));
        taken = taken - interrupt.own;
    }
    most
}
