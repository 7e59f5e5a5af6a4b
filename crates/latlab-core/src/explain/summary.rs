//! Summary of all explanations of a run: shares of causes, and the worst wake-ups.

use super::charge::Explanation;
use super::names::Names;
use crate::record::explained::{Explained, Share, Stack};
use crate::record::{Charge, Sample, worst_first};
use crate::time::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of separate shares; the smallest beyond that are merged.
const SHARES: usize = 100;

/// Maximum number of separate stacks.
const STACKS: usize = 1_000;

/// Shares and stacks are merged while the run goes on, where they are this many times the maximum.
const EXCESS: usize = 2;

/// The culprit of merged shares and stacks.
const OTHERS: &str = "others";

/// One late wake-up, with the data that a record keeps.
#[derive(Clone, Copy, Debug)]
pub struct LateWakeup<'a> {
    /// The probe, or the task that was watched.
    pub probe: &'a str,
    /// The CPU.
    pub cpu: u32,
    /// When the task ran, since the first sample that counts.
    pub at: Nanos,
    /// When it should have run, on `CLOCK_MONOTONIC`.
    pub due: Nanos,
    /// Its latency.
    pub latency: Nanos,
}

/// The explanations so far. Its size grows neither with the number of wake-ups nor with the variety of
/// their causes.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    late: u64,
    total: Nanos,
    unexplained: Nanos,
    shares: BTreeMap<Key, Sums>,
    stacks: BTreeMap<String, Nanos>,
    worst: Vec<Sample>,
}

/// Cause, culprit and function.
type Key = (&'static str, String, Option<String>);

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    total: Nanos,
    worst: Nanos,
}

impl Summary {
    /// Adds one wake-up.
    pub fn add(&mut self, late: LateWakeup<'_>, explanation: &Explanation, names: &Names) {
        self.late += 1;
        self.total = self.total + late.latency;
        self.unexplained = self.unexplained + explanation.unexplained;
        // A culprit that delays one wake-up twice counts once, with the sum of both charges.
        let mut shares: BTreeMap<Key, Nanos> = BTreeMap::new();
        for charge in &explanation.charges {
            let key = (charge.cause, names.kind(&charge.culprit), names.function(&charge.culprit));
            let share = shares.entry(key).or_default();
            *share = *share + charge.length();
            let stack = self.stacks.entry(names.folded(charge.cause, &charge.culprit)).or_default();
            *stack = *stack + charge.length();
        }
        for (key, length) in shares {
            let sums = self.shares.entry(key).or_default();
            sums.count += 1;
            sums.total = sums.total + length;
            sums.worst = sums.worst.max(length);
        }
        if self.shares.len() > EXCESS * SHARES {
            self.merge_small_shares();
        }
        if self.stacks.len() > EXCESS * STACKS {
            self.merge_small_stacks();
        }
        let among_worst = self.worst.len() < crate::worst::KEPT
            || self.worst.last().is_some_and(|last| last.latency < late.latency);
        if among_worst {
            self.worst.push(sample(late, explanation, names));
            worst_first(&mut self.worst);
        }
    }

    fn merge_small_shares(&mut self) {
        let mut shares: Vec<(Key, Sums)> = std::mem::take(&mut self.shares).into_iter().collect();
        shares.sort_by_key(|(_, sums)| Reverse(sums.total));
        let small = shares.split_off(SHARES);
        self.shares = shares.into_iter().collect();
        for ((cause, ..), sums) in small {
            let others = self.shares.entry((cause, OTHERS.to_owned(), None)).or_default();
            others.count += sums.count;
            others.total = others.total + sums.total;
            others.worst = others.worst.max(sums.worst);
        }
    }

    fn merge_small_stacks(&mut self) {
        let mut stacks: Vec<(String, Nanos)> =
            std::mem::take(&mut self.stacks).into_iter().collect();
        stacks.sort_by_key(|(_, ns)| Reverse(*ns));
        let small = stacks.split_off(STACKS);
        self.stacks = stacks.into_iter().collect();
        for (stack, ns) in small {
            let others = self.stacks.entry(others_of(&stack)).or_default();
            *others = *others + ns;
        }
    }

    /// Returns the worst wake-ups, worst first.
    pub fn worst(&self) -> &[Sample] {
        &self.worst
    }

    /// Returns the shares as a record keeps them. The caller adds the number of wake-ups, the cost
    /// of explaining, and the missing events.
    pub fn explained(&self) -> Explained {
        let mut explained = Explained {
            late: self.late,
            total: self.total,
            unexplained: self.unexplained,
            ..Explained::default()
        };
        let shares = self.shares.iter().map(|((cause, culprit, function), sums)| Share {
            cause: (*cause).to_owned(),
            culprit: culprit.clone(),
            function: function.clone(),
            count: sums.count,
            total: sums.total,
            worst: sums.worst,
        });
        let stacks = self.stacks.iter().map(|(stack, ns)| Stack { stack: stack.clone(), ns: *ns });
        let (shares, stacks) = (largest(shares, SHARES), largest(stacks, STACKS));
        explained.take(shares.0, stacks.0);
        explained.take(shares.1.map(merged_share), stacks.1.map(merged_stack));
        explained
    }
}

/// The `most` largest, and all others.
fn largest<T: HasTotal>(
    all: impl Iterator<Item = T>,
    most: usize,
) -> (std::vec::IntoIter<T>, std::vec::IntoIter<T>) {
    let mut all: Vec<T> = all.collect();
    all.sort_by_key(|one| Reverse(one.total()));
    let rest = all.split_off(most.min(all.len()));
    (all.into_iter(), rest.into_iter())
}

/// An item with a total time, by which it is sorted.
trait HasTotal {
    fn total(&self) -> Nanos;
}

impl HasTotal for Share {
    fn total(&self) -> Nanos {
        self.total
    }
}

impl HasTotal for Stack {
    fn total(&self) -> Nanos {
        self.ns
    }
}

fn merged_share(share: Share) -> Share {
    Share { culprit: OTHERS.to_owned(), function: None, ..share }
}

fn merged_stack(Stack { stack, ns }: Stack) -> Stack {
    Stack { stack: others_of(&stack), ns }
}

/// The stack that stands for all small ones of the same cause.
fn others_of(stack: &str) -> String {
    let cause = stack.split(';').next().unwrap_or_default();
    format!("{cause};{OTHERS}")
}

fn sample(late: LateWakeup<'_>, explanation: &Explanation, names: &Names) -> Sample {
    let causes = explanation.charges.iter().map(|charge| Charge {
        cause: charge.cause.to_owned(),
        from: charge.from - late.due,
        ns: charge.length(),
        culprit: names.culprit(&charge.culprit),
        stack: names.stack(&charge.culprit),
    });
    Sample {
        probe: late.probe.to_owned(),
        cpu: late.cpu,
        at: late.at,
        latency: late.latency,
        index: None,
        causes: causes.collect(),
        unexplained: Some(explanation.unexplained),
        path: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;
    use crate::explain::any::task;
    use crate::explain::charge::{Charge, Culprit};

    /// Two charges to one task around one without culprit, and 5 ns unexplained; due at 100.
    fn explanation(pid: u32, length: u64) -> Explanation {
        let charge = |cause, from: u64, length: u64, culprit| Charge {
            cause,
            from: Nanos(from),
            to: Nanos(from + length),
            culprit,
        };
        let culprit = Culprit { task: Some(task(pid)), ..Culprit::default() };
        Explanation {
            charges: vec![
                charge(Cause::HigherPriority.name(), 100, length, culprit.clone()),
                charge("interrupt", 100 + length, 10, Culprit::default()),
                charge(Cause::HigherPriority.name(), 110 + length, 1, culprit),
            ],
            unexplained: Nanos(5),
        }
    }

    fn summary(lengths: impl Iterator<Item = u64>) -> Summary {
        let mut summary = Summary::default();
        for (at, length) in (0u64..).zip(lengths) {
            let pid = u32::try_from(at % 7).unwrap() + 1;
            let latency = Nanos(length + 16);
            let late =
                LateWakeup { probe: "cyclic", cpu: 0, at: Nanos(at), due: Nanos(100), latency };
            summary.add(late, &explanation(pid, length), &Names::default());
        }
        summary
    }

    #[test]
    fn shares_and_unexplained_time_add_up_to_the_latency() {
        let explained = summary(1..=50).explained();
        assert_eq!(explained.flaw(), None);
        assert_eq!((explained.late, explained.unexplained), (50, Nanos(250)));
        assert_eq!(explained.causes.len(), 2, "{:?}", explained.causes);
        let first = &explained.causes[0];
        assert_eq!((first.culprit.as_str(), first.count), ("task", 50));
        assert_eq!((first.total, first.worst), (Nanos(50 * 51 / 2 + 50), Nanos(51)));
        let stacks: u64 = explained.stacks.iter().map(|stack| stack.ns.0).sum();
        assert_eq!(Nanos(stacks), explained.total - explained.unexplained);
    }

    #[test]
    fn worst_ten_are_kept_with_their_charges() {
        let summary = summary(1..=50);
        let latencies: Vec<u64> = summary.worst().iter().map(|sample| sample.latency.0).collect();
        assert_eq!(latencies, (57..=66).rev().collect::<Vec<u64>>());
        let worst = &summary.worst()[0];
        assert_eq!(worst.causes[1].from, Nanos(50));
        assert_eq!(worst.causes[0].culprit, "task (pid 1)");
        let sum = worst.causes.iter().fold(Nanos(0), |sum, charge| sum + charge.ns);
        assert_eq!(Some(worst.latency - sum), worst.unexplained);
    }

    /// The summary of wake-ups that are each delayed by another task.
    fn of_many_culprits(number: u32) -> Summary {
        let mut summary = Summary::default();
        for index in 0..number {
            let mut explanation = explanation(index, u64::from(index) + 1);
            for charge in &mut explanation.charges {
                let comm = crate::explain::Comm::from(format!("task{index}").as_str());
                charge.culprit.task = Some(crate::explain::Task { comm, ..task(index + 1) });
            }
            let latency = Nanos(u64::from(index) + 17);
            let late = LateWakeup { probe: "x", cpu: 0, at: Nanos(0), due: Nanos(100), latency };
            summary.add(late, &explanation, &Names::default());
        }
        summary
    }

    #[test]
    fn shares_of_many_culprits_are_merged() {
        let explained = of_many_culprits(300).explained();
        assert!(explained.causes.len() <= SHARES + 2, "{}", explained.causes.len());
        assert!(explained.causes.iter().any(|share| share.culprit == OTHERS));
        assert_eq!(explained.flaw(), None);
    }

    #[test]
    fn size_does_not_grow_with_the_variety_of_causes() {
        let summary = of_many_culprits(10_000);
        // The other causes of each merged set are at most as many as there are causes.
        assert!(summary.shares.len() <= EXCESS * SHARES + 2, "{}", summary.shares.len());
        assert!(summary.stacks.len() <= EXCESS * STACKS + 2, "{}", summary.stacks.len());
        let explained = summary.explained();
        assert_eq!(explained.flaw(), None);
        let stacks: u64 = explained.stacks.iter().map(|stack| stack.ns.0).sum();
        assert_eq!(Nanos(stacks), explained.total - explained.unexplained);
        assert_eq!(explained.causes.iter().map(|share| share.count).sum::<u64>(), 20_000);
    }
}
