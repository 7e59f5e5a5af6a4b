//! The statistics of a loop of latlab-period, as its memory has them.
//!
//! The layout is the same as in `crates/latlab-period/src/statistics.rs`, whose tests compare both.
//! The memory belongs to another program, which may write anything into it.

use crate::atomic_histogram::{BUCKETS, value};
use crate::histogram::Histogram;
use crate::record::{Counts, Disturbed, Schedule, Series};
use crate::time::Nanos;

/// The name of the memory, as `/proc/PID/fd` shows it.
pub const MEMORY: &str = "latlab-period";
/// The first number of the memory: the bytes `latlabpd`.
const MAGIC: u64 = u64::from_ne_bytes(*b"latlabpd");
const VERSION: u64 = 1;

/// Numbers before the buckets of a histogram: minimum, maximum, sum, and a zero.
const BEFORE_BUCKETS: usize = 4;
const HISTOGRAM: usize = BEFORE_BUCKETS + BUCKETS;
const LATENESS: usize = 32;
const RUNNING: usize = LATENESS + HISTOGRAM;
/// Size of the memory in 64-bit numbers.
pub const NUMBERS: usize = RUNNING + HISTOGRAM;

/// A loop so far.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedLoop {
    /// Its name.
    pub name: String,
    /// Its thread, as the program knows it.
    pub thread: u32,
    /// Policy of the thread, as in records: `fifo`, `rr`, `deadline` or `other`.
    pub policy: &'static str,
    /// Real-time priority, 1 to 99; 0 for other policies.
    pub priority: u32,
    /// Time from one cycle to the next: 10 us to 1 h.
    pub period: Nanos,
    /// By how much the thread wakes early, to spin until a cycle is due.
    pub spin: Nanos,
    /// What follows an overrun: `skip`, `catch-up` or `stop`.
    pub on_overrun: &'static str,
    /// `starting`, `running`, or `stopped` by an overrun.
    pub state: &'static str,
    /// When the first cycle was due, on `CLOCK_MONOTONIC`.
    pub first: Nanos,
    /// The thread's usage before the first cycle.
    pub before: ThreadUsage,
    /// Cycles that ended after the next one was due.
    pub overruns: u64,
    /// Periods that were left out after overruns.
    pub missed: u64,
    /// Times from when a cycle was due until it started.
    pub lateness: Histogram,
    /// Times from the start of a cycle until its end.
    pub running: Histogram,
}

/// A thread's usage since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time.
    pub cpu: Nanos,
    /// Page faults, and involuntary context switches.
    pub disturbed: Disturbed,
}

/// Why some memory is not the statistics of a loop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// The loop is being made: look again.
    #[error("its statistics are not written yet")]
    Unfinished,
    /// It is something else.
    #[error("it does not begin as the statistics of a loop do")]
    Magic,
    /// Another version of the library wrote it.
    #[error(
        "its layout has version {0}, this latlab reads version {VERSION}: use the latlab of the same release"
    )]
    Version(u64),
    /// It was written wrongly.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

impl WatchedLoop {
    /// Reads the numbers of the memory of a loop.
    pub fn read(numbers: &[u64]) -> Result<WatchedLoop, Foreign> {
        let number = |place: usize| numbers.get(place).copied().unwrap_or(0);
        match (number(0), number(1)) {
            (0, _) => return Err(Foreign::Unfinished),
            (MAGIC, VERSION) => {}
            (MAGIC, other) => return Err(Foreign::Version(other)),
            _ => return Err(Foreign::Magic),
        }
        if numbers.len() != NUMBERS || number(2) != 8 * NUMBERS as u64 {
            return Err(Foreign::Damaged("its size"));
        }
        let small = |place, most: u32, what| {
            let small = u32::try_from(number(place)).ok().filter(|small| *small <= most);
            small.ok_or(Foreign::Damaged(what))
        };
        let period = Nanos(number(6));
        if period < Nanos::from_micros(10) || period > Nanos::from_secs(3_600) {
            return Err(Foreign::Damaged("its period"));
        }
        if number(18).checked_mul(period.0).is_none() {
            return Err(Foreign::Damaged("its missed periods"));
        }
        Ok(WatchedLoop {
            name: name(&numbers[12..16]),
            thread: small(3, u32::MAX, "its thread")?,
            policy: policy(number(4)),
            priority: small(5, 99, "its priority")?,
            period,
            spin: Nanos(number(7)),
            on_overrun: ["skip", "catch-up", "stop"][small(8, 2, "its overruns")? as usize],
            state: ["starting", "running", "stopped"][small(9, 2, "its state")? as usize],
            first: Nanos(number(10)),
            before: ThreadUsage {
                cpu: Nanos(number(11)),
                disturbed: Disturbed {
                    minor_faults: number(19),
                    major_faults: number(20),
                    preempted: number(21),
                },
            },
            overruns: number(17),
            missed: number(18),
            lateness: histogram(&numbers[LATENESS..RUNNING])?,
            running: histogram(&numbers[RUNNING..])?,
        })
    }

    /// Returns the distributions of lateness and running time for a record. `now` is the thread's
    /// usage so far, `cpu` its last CPU.
    pub fn series(&self, now: ThreadUsage, cpu: u32) -> [Series; 2] {
        let of = |from: &str, to: &str, missed: u64, histogram: &Histogram| {
            let mut series = Series {
                probe: self.name.clone(),
                span: (from.to_owned(), to.to_owned()),
                cpu,
                schedule: self.schedule(),
                interval: Some(self.period).filter(|period| is_quick(histogram, *period)),
                counts: Counts { recorded: histogram.count(), missed, below_zero: 0 },
                disturbed: self.disturbed(now),
                cpu_ns: now.cpu - self.before.cpu,
                ..Series::default()
            };
            series.set_histogram(histogram);
            series
        };
        [
            of("the cycle was due", "it started", self.missed, &self.lateness),
            of("the cycle started", "it ended", 0, &self.running),
        ]
    }

    fn schedule(&self) -> Schedule {
        Schedule { policy: self.policy.to_owned(), priority: self.priority, slack: Nanos(0) }
    }

    /// Page faults and involuntary context switches since the first cycle.
    pub fn disturbed(&self, now: ThreadUsage) -> Disturbed {
        let (now, before) = (now.disturbed, self.before.disturbed);
        Disturbed {
            minor_faults: now.minor_faults.saturating_sub(before.minor_faults),
            major_faults: now.major_faults.saturating_sub(before.major_faults),
            preempted: now.preempted.saturating_sub(before.preempted),
        }
    }
}

/// Whether the correction for missed periods ends soon: it takes a step for each period of each time.
fn is_quick(histogram: &Histogram, period: Nanos) -> bool {
    const MOST: u64 = 50_000_000;
    histogram.buckets().map(|bucket| bucket.from.0 / period.0).sum::<u64>() <= MOST
}

/// The name of a policy by its number in `sched.h`.
fn policy(number: u64) -> &'static str {
    match number {
        1 => "fifo",
        2 => "rr",
        6 => "deadline",
        _ => "other",
    }
}

/// A text that ends with zeros.
fn name(numbers: &[u64]) -> String {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Reads a histogram. The loop may have counted a time meanwhile: then its bucket may be counted
/// already, and the sum is one time ahead.
fn histogram(numbers: &[u64]) -> Result<Histogram, Foreign> {
    /// More cycles than any loop can have had.
    const MOST: u64 = 1 << 56;
    let (head, buckets) = numbers.split_at(BEFORE_BUCKETS);
    let count = buckets.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
    match count {
        Some(0) => return Ok(Histogram::new()),
        Some(count) if count <= MOST && head[0] <= head[1] => {}
        _ => return Err(Foreign::Damaged("a histogram")),
    }
    let counts = buckets.iter().enumerate().filter(|(_, count)| **count > 0);
    let counts = counts.map(|(index, count)| (value(index), *count));
    Ok(Histogram::from_parts(counts, Nanos(head[0]), Nanos(head[1]), u128::from(head[2])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpulist::CpuList;
    use crate::machine::Machine;
    use crate::plan::{Length, Plan};
    use crate::record::Record;
    use proptest::prelude::*;

    /// The memory of a loop with one cycle, which was 5 ns late.
    fn memory() -> Vec<u64> {
        let mut numbers = vec![0; NUMBERS];
        numbers[0] = MAGIC;
        numbers[1] = VERSION;
        numbers[2] = 8 * NUMBERS as u64;
        numbers[3] = 4711;
        numbers[4..8].copy_from_slice(&[1, 80, 1_000_000, 0]);
        numbers[12] = u64::from_ne_bytes(*b"control\0");
        numbers[16..19].copy_from_slice(&[1, 0, 0]);
        numbers[LATENESS..LATENESS + 3].copy_from_slice(&[5, 5, 5]);
        numbers[LATENESS + BEFORE_BUCKETS + 5] = 1;
        numbers[RUNNING] = u64::MAX;
        numbers
    }

    fn record_of(watched: &WatchedLoop) -> Record {
        let plan = Plan::bare("native", CpuList::default(), Length::For(Nanos(1)));
        let series = watched.series(ThreadUsage::default(), 0).to_vec();
        Record { series, ..Record::new("latlab", Nanos(0), plan, Machine::default()) }
    }

    #[test]
    fn loop_is_read_and_gives_a_valid_record() {
        let watched = WatchedLoop::read(&memory()).unwrap();
        assert_eq!(
            (watched.name.as_str(), watched.policy, watched.priority),
            ("control", "fifo", 80)
        );
        assert_eq!((watched.lateness.count(), watched.lateness.max()), (1, Nanos(5)));
        assert_eq!(watched.running.count(), 0);
        record_of(&watched).check().unwrap();
    }

    #[test]
    fn foreign_memory_is_refused_with_what_is_wrong() {
        let with = |place: usize, number: u64| {
            let mut numbers = memory();
            numbers[place] = number;
            WatchedLoop::read(&numbers).unwrap_err()
        };
        assert_eq!(with(0, 0), Foreign::Unfinished);
        assert_eq!(with(0, 1), Foreign::Magic);
        assert_eq!(with(1, 2), Foreign::Version(2));
        assert_eq!(with(2, 8), Foreign::Damaged("its size"));
        assert_eq!(with(6, 0), Foreign::Damaged("its period"));
        assert_eq!(with(9, 3), Foreign::Damaged("its state"));
        assert_eq!(with(18, u64::MAX), Foreign::Damaged("its missed periods"));
        assert_eq!(with(LATENESS, 6), Foreign::Damaged("a histogram"));
        assert_eq!(with(RUNNING + BEFORE_BUCKETS, u64::MAX), Foreign::Damaged("a histogram"));
        assert_eq!(WatchedLoop::read(&[]).unwrap_err(), Foreign::Unfinished);
        assert_eq!(WatchedLoop::read(&memory()[..40]).unwrap_err(), Foreign::Damaged("its size"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_memory_is_refused_or_gives_a_valid_record(
            changes in proptest::collection::vec((0..NUMBERS, prop_oneof![any::<u64>(), 0..9_u64]), 0..40),
            head in proptest::collection::vec((3..22_usize, prop_oneof![any::<u64>(), 0..9_u64]), 0..4),
        ) {
            let mut numbers = memory();
            for (place, number) in changes.into_iter().chain(head) {
                numbers[place] = number;
            }
            if let Ok(watched) = WatchedLoop::read(&numbers) {
                record_of(&watched).check().unwrap();
            }
        }
    }
}
