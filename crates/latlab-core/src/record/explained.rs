//! What made wake-ups late, summed up over a run.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// All late wake-ups of a run, explained. The shares and `unexplained` make up `total` exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// How many wake-ups were watched.
    pub wake_ups: u64,
    /// How many of them were late, and are explained here.
    pub late: u64,
    /// What the latencies of the late ones add up to.
    pub total: Nanos,
    /// How much of that no cause answers for.
    pub unexplained: Nanos,
    /// Only what is later counts as late; of merged runs, the lowest.
    pub above: Nanos,
    /// Who took how much, the most first.
    pub causes: Vec<Share>,
    /// The same by the kernel's functions, the most first.
    pub stacks: Vec<Stack>,
    /// What explaining cost.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cost: Vec<Cost>,
    /// Of how long that is: the begin of the run.
    #[serde(default)]
    pub counted: Nanos,
    /// Late wake-ups, samples and events that could not be kept; `missing` says how many of each.
    pub lost: u64,
    /// What can't be told here, and why, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing: Vec<String>,
}

/// What one culprit took of all late wake-ups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The cause's name.
    pub cause: String,
    /// The task, interrupt or softirq; empty where nobody is to blame.
    pub who: String,
    /// The function in which it was, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
    /// How many wake-ups it delayed.
    pub count: u64,
    /// By how much altogether.
    pub total: Nanos,
    /// By how much one of them.
    pub worst: Nanos,
}

/// A stack of functions, and what was charged to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// `cause;who;outer;…;inner`.
    pub stack: String,
    /// How much.
    pub ns: Nanos,
}

/// What one program that watches the kernel took of the CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Its name.
    pub program: String,
    /// How often it ran.
    pub runs: u64,
    /// How long altogether.
    pub ns: Nanos,
}

impl Explained {
    /// Adds another run's.
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

    /// Takes shares and stacks in, those that are there already added up, the most first.
    pub(crate) fn take(
        &mut self,
        shares: impl Iterator<Item = Share>,
        stacks: impl Iterator<Item = Stack>,
    ) {
        let mut by_culprit: BTreeMap<_, Share> = BTreeMap::new();
        for share in std::mem::take(&mut self.causes).into_iter().chain(shares) {
            let culprit = (share.cause.clone(), share.who.clone(), share.function.clone());
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
        // What is equally long stays in the order of the names.
        self.causes.sort_by_key(|share| Reverse(share.total));
        self.stacks.sort_by_key(|stack| Reverse(stack.ns));
    }

    /// What can't be, if anything.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let shares = self.causes.iter().fold(self.unexplained, |sum, share| sum + share.total);
        if shares != self.total {
            return Some("its causes and its remainder are not its total");
        }
        (self.late > self.wake_ups && self.wake_ups > 0)
            .then_some("more wake-ups were late than there were")
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
            who: "nobody".to_owned(),
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
        }
    }

    #[test]
    fn merging_adds_up_in_any_grouping_and_loses_nothing() {
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
    fn what_does_not_add_up_is_not_believed() {
        let mut wrong = explained("host", 5);
        wrong.unexplained = Nanos(0);
        assert!(wrong.flaw().is_some());
    }
}
