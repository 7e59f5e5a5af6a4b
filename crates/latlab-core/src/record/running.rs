//! Where the time of threads went that were to run.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A thread, and where its time went. Times add up to its [span](RunningThread::span) exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningThread {
    /// Its name.
    pub name: String,
    /// Its thread id; of merged runs, in the first.
    pub pid: u32,
    /// Its real-time priority, 1 to 99, 100 for `SCHED_DEADLINE`; absent for `SCHED_OTHER`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub priority: Option<i32>,
    /// Time for which it had a CPU, without interrupts and softirqs on top of it.
    pub ran: Nanos,
    /// Time for which it slept, and how often.
    pub slept: Nanos,
    /// Number of sleeps.
    pub sleeps: u64,
    /// Time in which it was to run, and events of its CPU were lost.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub unrecorded: Nanos,
    /// Number of its page faults, as the kernel counts them. Their time counts as its own.
    #[serde(skip_serializing_if = "is_none", default)]
    pub faults: u64,
    /// Of a busy loop, the number of gaps that it measured.
    #[serde(skip_serializing_if = "is_none", default)]
    pub gaps: u64,
    /// What took the CPU from it, by CPU, the largest of each first.
    pub taken: Vec<Taken>,
    /// Tasks of lower priority that waited for it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub starved: Vec<Starved>,
    /// Tasks that had its CPU while it was throttled, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub meanwhile: Vec<String>,
}

/// What took a CPU from a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The CPU.
    pub cpu: u32,
    /// The name of the cause; `no event` where nothing was recorded from one reading of the clock to
    /// the next.
    pub cause: String,
    /// The interrupt, softirq or task; empty where there is none.
    pub culprit: String,
    /// The kernel function, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
    /// How often.
    pub count: u64,
    /// Time in all, without what interrupted it.
    pub total: Nanos,
    /// The longest.
    pub longest: Nanos,
}

/// A task that waited for a CPU that a thread of higher priority had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starved {
    /// Its name.
    pub task: String,
    /// How often it waited.
    pub count: u64,
    /// The longest wait.
    pub longest: Nanos,
}

/// Most threads in a record.
const THREADS: usize = 100;

impl RunningThread {
    /// Time that is accounted for.
    pub fn span(&self) -> Nanos {
        self.awake() + self.slept
    }

    /// Time in which it was to run.
    pub fn awake(&self) -> Nanos {
        self.ran + self.unrecorded + self.lost()
    }

    /// Time that was taken from it.
    pub fn lost(&self) -> Nanos {
        self.taken.iter().fold(Nanos(0), |sum, taken| sum + taken.total)
    }

    /// The time of each cause with its largest culprit, over all CPUs, the largest first.
    pub fn causes(&self) -> Vec<(&Taken, Nanos)> {
        let mut causes: Vec<(&Taken, Nanos)> = Vec::new();
        for taken in &self.taken {
            match causes.iter_mut().find(|(first, _)| first.cause == taken.cause) {
                Some((largest, sum)) => {
                    *sum = *sum + taken.total;
                    if taken.total > largest.total {
                        *largest = taken;
                    }
                }
                None => causes.push((taken, taken.total)),
            }
        }
        causes.sort_by_key(|(_, sum)| Reverse(*sum));
        causes
    }

    /// The CPUs on which it was to run and something took its time.
    fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.taken.iter().map(|taken| taken.cpu).collect();
        cpus.dedup();
        cpus
    }

    /// Adds the account of the same thread in another run.
    fn add(&mut self, other: &RunningThread) {
        self.ran = self.ran + other.ran;
        self.slept = self.slept + other.slept;
        self.sleeps = self.sleeps.saturating_add(other.sleeps);
        self.unrecorded = self.unrecorded + other.unrecorded;
        self.faults = self.faults.saturating_add(other.faults);
        self.gaps = self.gaps.saturating_add(other.gaps);
        for taken in &other.taken {
            match self.taken.iter_mut().find(|mine| mine.is_like(taken)) {
                Some(mine) => mine.add(taken),
                None => self.taken.push(taken.clone()),
            }
        }
        self.taken.sort_by_key(|taken| (taken.cpu, Reverse(taken.total)));
        for starved in &other.starved {
            match self.starved.iter_mut().find(|mine| mine.task == starved.task) {
                Some(mine) => {
                    mine.count = mine.count.saturating_add(starved.count);
                    mine.longest = mine.longest.max(starved.longest);
                }
                None => self.starved.push(starved.clone()),
            }
        }
        for task in &other.meanwhile {
            if !self.meanwhile.contains(task) {
                self.meanwhile.push(task.clone());
            }
        }
    }
}

impl Taken {
    fn is_like(&self, other: &Taken) -> bool {
        (self.cpu, &self.cause, &self.culprit, &self.function)
            == (other.cpu, &other.cause, &other.culprit, &other.function)
    }

    fn add(&mut self, other: &Taken) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total + other.total;
        self.longest = self.longest.max(other.longest);
    }
}

/// Adds the threads of another run. Threads of the same name on the same CPUs are merged.
pub(super) fn merge(all: &mut Vec<RunningThread>, others: &[RunningThread]) {
    let mut is_free = vec![true; all.len()];
    for other in others {
        let same = |mine: &RunningThread| mine.name == other.name && mine.cpus() == other.cpus();
        match (0..is_free.len()).find(|index| is_free[*index] && same(&all[*index])) {
            Some(index) => {
                all[index].add(other);
                is_free[index] = false;
            }
            None => all.push(other.clone()),
        }
    }
    all.truncate(THREADS);
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(time: &Nanos) -> bool {
    *time == Nanos(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(cpu: u32, cause: &str, us: u64) -> Taken {
        let (cause, total) = (cause.to_owned(), Nanos::from_micros(us));
        Taken { cpu, cause, count: 1, total, longest: total, ..Taken::default() }
    }

    fn thread(name: &str, taken: Vec<Taken>) -> RunningThread {
        let ran = Nanos::from_micros(100);
        RunningThread { name: name.to_owned(), ran, taken, ..RunningThread::default() }
    }

    #[test]
    fn runs_of_a_thread_are_added_by_name_and_cpu() {
        let of = |us| vec![taken(1, "interrupt", us), taken(1, "softirq", 5)];
        let mut all = vec![thread("loop", of(3)), thread("loop", vec![taken(2, "host", 1)])];
        merge(&mut all, &[thread("loop", of(9)), thread("other", of(1))]);
        assert_eq!(all.len(), 3);
        let first = &all[0];
        assert_eq!((first.ran, first.lost()), (Nanos::from_micros(200), Nanos::from_micros(22)));
        assert_eq!((first.taken[0].count, first.taken[0].longest), (2, Nanos::from_micros(9)));
        assert_eq!(first.span(), Nanos::from_micros(222));
    }

    #[test]
    fn two_threads_of_one_name_stay_apart() {
        let mut all = Vec::new();
        let both =
            [thread("loop", vec![taken(1, "host", 1)]), thread("loop", vec![taken(1, "host", 2)])];
        merge(&mut all, &both);
        merge(&mut all, &both);
        let lost: Vec<u64> = all.iter().map(|one| one.lost().0).collect();
        assert_eq!(lost, [2_000, 4_000]);
    }

    #[test]
    fn causes_are_summed_over_cpus_with_the_largest_culprit() {
        let one = thread(
            "loop",
            vec![taken(0, "softirq", 4), taken(1, "host", 7), taken(1, "softirq", 5)],
        );
        let causes = one.causes();
        let found: Vec<_> =
            causes.iter().map(|(most, sum)| (&*most.cause, most.cpu, sum.0)).collect();
        assert_eq!(found, [("softirq", 1, 9_000), ("host", 1, 7_000)]);
    }
}
