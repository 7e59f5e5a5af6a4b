//! Summary of the causes of late wake-ups over a run.

use super::Sample;
use super::running::{self, RunningThread};
use crate::explain::terms::{Term, Terms};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Summary of all late wake-ups of a run. The shares and `unexplained` add up to `total` exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// Number of observed wake-ups.
    pub wake_ups: u64,
    /// Number of late wake-ups, which are explained here.
    pub late: u64,
    /// Sum of the latencies of the late wake-ups.
    pub total: Nanos,
    /// The part of it without a known cause.
    pub unexplained: Nanos,
    /// Threshold above which a wake-up counts as late; of merged runs, the lowest.
    pub above: Nanos,
    /// The shares by cause and culprit, the largest first.
    pub causes: Vec<Share>,
    /// The same by call stack, the largest first.
    pub stacks: Vec<Stack>,
    /// Cost of tracing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cost: Vec<Cost>,
    /// Length of the first part of the run, over which the cost was measured.
    #[serde(default)]
    pub counted: Nanos,
    /// Number of lost wake-ups, samples and events; `missing` gives the number of each.
    pub lost: u64,
    /// Missing information and its reason, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<String>,
    /// The activities of a CPU before the sample that ended the run: the sample's CPU.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub history: Option<History>,
    /// Where the time of threads went that were to run: of busy loops, and of watched threads that
    /// never slept.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub running: Vec<RunningThread>,
}

impl Explained {
    /// Returns the sum of all late wake-ups, divided into timer resolution, non-preemptible sections
    /// and scheduling.
    pub fn terms(&self) -> Terms {
        let shares = self.causes.iter().map(|share| (Term::of(&share.cause), share.total));
        Terms::of(shares, self.unexplained)
    }
}

/// The last activities of a CPU before a late sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The CPU.
    pub cpu: u32,
    /// The activities, in the order of their ends.
    pub activities: Vec<Activity>,
}

/// An activity of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Its start, since counting began.
    pub at: Nanos,
    /// Its length.
    pub ns: Nanos,
    /// Its kind.
    pub kind: Kind,
    /// The task, or the interrupt, softirq or callback.
    pub name: String,
}

/// Kinds of activities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A task had the CPU.
    Task,
    /// An interrupt, a softirq or the callback of a timer ran.
    Interrupt,
}

/// The explanations of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanations {
    /// The sums.
    pub explained: Explained,
    /// The worst samples, with their charges.
    pub worst: Vec<Sample>,
}

/// The share of one culprit in all late wake-ups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The cause's name.
    pub cause: String,
    /// The task, interrupt or softirq to blame; empty where there is none.
    pub culprit: String,
    /// The kernel function, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
    /// Number of wake-ups it delayed.
    pub count: u64,
    /// Sum of the delays.
    pub total: Nanos,
    /// The longest delay.
    pub worst: Nanos,
}

/// A call stack, and the time charged to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// `cause;culprit;outer;…;inner`.
    pub stack: String,
    /// The time.
    pub ns: Nanos,
}

/// CPU time of one tracing program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Its name.
    pub program: String,
    /// Number of runs.
    pub runs: u64,
    /// CPU time of all runs.
    pub ns: Nanos,
}

impl Explained {
    /// Adds the summary of another run. The history of the first run stays.
    pub fn add(&mut self, other: &Explained) {
        let nothing = self.late == 0 && self.wake_ups == 0;
        self.above = if nothing { other.above } else { self.above.min(other.above) };
        self.wake_ups = self.wake_ups.saturating_add(other.wake_ups);
        self.late = self.late.saturating_add(other.late);
        self.total = self.total + other.total;
        self.unexplained = self.unexplained + other.unexplained;
        self.counted = self.counted + other.counted;
        self.lost = self.lost.saturating_add(other.lost);
        self.take(other.causes.iter().cloned(), other.stacks.iter().cloned());
        running::merge(&mut self.running, &other.running);
        for theirs in &other.cost {
            match self.cost.iter_mut().find(|mine| mine.program == theirs.program) {
                Some(mine) => {
                    mine.runs = mine.runs.saturating_add(theirs.runs);
                    mine.ns = mine.ns + theirs.ns;
                }
                None => self.cost.push(theirs.clone()),
            }
        }
        for sentence in &other.missing {
            if !self.missing.contains(sentence) {
                self.missing.push(sentence.clone());
            }
        }
    }

    /// Adds shares and stacks, summed up by culprit and by stack, and sorts them.
    pub(crate) fn take(
        &mut self,
        shares: impl Iterator<Item = Share>,
        stacks: impl Iterator<Item = Stack>,
    ) {
        let mut by_culprit: BTreeMap<_, Share> = BTreeMap::new();
        for share in std::mem::take(&mut self.causes).into_iter().chain(shares) {
            let culprit = (share.cause.clone(), share.culprit.clone(), share.function.clone());
            match by_culprit.get_mut(&culprit) {
                Some(sum) => sum.add(&share),
                None => drop(by_culprit.insert(culprit, share)),
            }
        }
        let mut by_stack: BTreeMap<String, Nanos> = BTreeMap::new();
        for Stack { stack, ns } in std::mem::take(&mut self.stacks).into_iter().chain(stacks) {
            let sum = by_stack.entry(stack).or_default();
            *sum = *sum + ns;
        }
        self.causes.extend(by_culprit.into_values());
        self.stacks.extend(by_stack.into_iter().map(|(stack, ns)| Stack { stack, ns }));
        // The sort is stable: equal times stay in the order of the names.
        self.causes.sort_by_key(|share| Reverse(share.total));
        self.stacks.sort_by_key(|stack| Reverse(stack.ns));
    }

    /// Returns an inconsistency, if there is one.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let shares = self.causes.iter().fold(self.unexplained, |sum, share| sum + share.total);
        if shares != self.total {
            return Some("its causes and its unexplained part do not add up to its total");
        }
        (self.late > self.wake_ups && self.wake_ups > 0)
            .then_some("it has more late wake-ups than wake-ups")
    }
}

impl Share {
    fn add(&mut self, other: &Share) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total + other.total;
        self.worst = self.worst.max(other.worst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(cause: &str, total: u64) -> Explained {
        let share = Share {
            cause: cause.to_owned(),
            culprit: "nobody".to_owned(),
            function: None,
            count: 1,
            total: Nanos(total),
            worst: Nanos(total),
        };
        Explained {
            wake_ups: 100,
            late: 1,
            total: Nanos(total + 1),
            unexplained: Nanos(1),
            above: Nanos(total),
            causes: vec![share],
            stacks: vec![Stack { stack: cause.to_owned(), ns: Nanos(total) }],
            cost: vec![Cost { program: "switch".to_owned(), runs: 5, ns: Nanos(7) }],
            counted: Nanos(10),
            lost: 2,
            missing: vec!["no symbols".to_owned()],
            history: None,
            running: Vec::new(),
        }
    }

    #[test]
    fn merge_is_associative_and_preserves_sums() {
        let of = |parts: &[(&str, u64)]| {
            parts.iter().fold(Explained::default(), |mut sum, (cause, total)| {
                sum.add(&explained(cause, *total));
                sum
            })
        };
        let all = of(&[("host", 5), ("softirq", 9), ("host", 3)]);
        let mut grouped = of(&[("host", 5)]);
        grouped.add(&of(&[("softirq", 9), ("host", 3)]));
        assert_eq!(all, grouped);
        assert_eq!(all.flaw(), None);
        assert_eq!((all.wake_ups, all.late, all.total), (300, 3, Nanos(20)));
        assert_eq!((all.above, all.lost, all.cost[0].runs), (Nanos(3), 6, 15));
        assert_eq!(all.causes[0].cause, "softirq");
        let host = &all.causes[1];
        assert_eq!((host.count, host.total, host.worst), (2, Nanos(8), Nanos(5)));
        assert_eq!((all.missing.len(), all.stacks.len()), (1, 2));
    }

    #[test]
    fn inconsistent_sum_is_a_flaw() {
        let mut wrong = explained("host", 5);
        wrong.unexplained = Nanos(0);
        assert!(wrong.flaw().is_some());
    }
}
