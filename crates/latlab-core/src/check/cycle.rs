//! Cycles of a thread: their period, times and overruns.

use crate::explain::Comm;
use crate::time::Nanos;
use std::collections::BTreeMap;

/// A cycle in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cycle {
    /// When it was due: the time it waited for, or its waking.
    pub(super) due: Nanos,
    /// When its wait returned.
    pub(super) start: Nanos,
    /// Time for which other tasks had its CPU.
    pub(super) preempted: Nanos,
    /// The task that replaced it first for the longest of these times.
    pub(super) preemptor: Option<(Comm, Nanos)>,
    /// Time for which it slept.
    pub(super) blocked: Nanos,
    /// The longest sleep, and what it was.
    pub(super) blocker: Option<(String, Nanos)>,
    /// Number of page faults.
    pub(super) faults: u64,
}

/// A finished cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Its number, from 0.
    pub number: u64,
    /// From when it was due until it ran.
    pub latency: Nanos,
    /// Time on the CPU.
    pub running: Nanos,
    /// From when it was due until it waited again.
    pub response: Nanos,
    /// Time for which other tasks had its CPU.
    pub preempted: Nanos,
    /// The task that replaced it first, for the longest of these times.
    pub preemptor: Option<Comm>,
    /// Time for which it slept.
    pub blocked: Nanos,
    /// What it slept for longest.
    pub blocker: Option<String>,
    /// Number of page faults.
    pub faults: u64,
}

impl Cycle {
    pub(super) fn finish(self, number: u64, end: Nanos) -> Finished {
        Finished {
            number,
            latency: self.start - self.due,
            running: (end - self.start) - (self.preempted + self.blocked),
            response: end - self.due,
            preempted: self.preempted,
            preemptor: self.preemptor.map(|(comm, _)| comm),
            blocked: self.blocked,
            blocker: self.blocker.map(|(what, _)| what),
            faults: self.faults,
        }
    }

    pub(super) fn add_preemption(&mut self, by: Comm, time: Nanos) {
        self.preempted = self.preempted + time;
        if self.preemptor.is_none_or(|(_, longest)| time > longest) {
            self.preemptor = Some((by, time));
        }
    }

    pub(super) fn add_sleep(&mut self, what: &str, time: Nanos) {
        self.blocked = self.blocked + time;
        if self.blocker.as_ref().is_none_or(|(_, longest)| time > *longest) {
            self.blocker = Some((what.to_owned(), time));
        }
    }
}

/// The periods of a thread: how often each occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct Periods(BTreeMap<Nanos, u64>);

/// Largest number of different periods; further ones are not counted.
const MOST: usize = 10_000;

impl Periods {
    pub(super) fn add(&mut self, period: Nanos) {
        if self.0.len() < MOST || self.0.contains_key(&period) {
            *self.0.entry(period).or_default() += 1;
        }
    }

    /// The median.
    pub(super) fn median(&self) -> Option<Nanos> {
        let all: u64 = self.0.values().sum();
        let mut before = 0;
        let found = self.0.iter().find(|(_, count)| {
            before += **count;
            before * 2 >= all
        });
        found.map(|(period, _)| *period)
    }
}
