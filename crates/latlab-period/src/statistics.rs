//! The statistics of a loop, in memory that `latlab watch` reads while the loop writes it.
//!
//! The memory is a memfd named `latlab-period`, sealed so that it keeps its size. It is an array of
//! 64-bit numbers in the byte order of the machine; [`word`] has their places. Numbers are written as
//! a whole, by one thread. The buckets of both histograms are those of `HdrHistogram` for 1 ns to 1 h
//! at three significant digits. Another layout has another [`VERSION`]. The reader is
//! `latlab_core::watch`.

use crate::settings::{Refused, policy};
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering, Ordering::Relaxed};

/// The loop so far. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Summary {
    /// Cycles that have started.
    pub cycles: u64,
    /// Cycles that ended after the next one was due.
    pub overruns: u64,
    /// Periods without a cycle, which were skipped.
    pub missed: u64,
    /// From when a cycle was due until it started: the least and the longest.
    pub lateness_min_ns: u64,
    /// See `lateness_min_ns`.
    pub lateness_max_ns: u64,
    /// Longest time from the start of a cycle until its end.
    pub running_max_ns: u64,
    /// By how much the thread wakes early, to spin until a cycle is due.
    pub spin_ns: u64,
}

/// The first number: the bytes `latlabpd`.
pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"latlabpd");
/// The version of the layout.
pub(crate) const VERSION: u64 = 1;

/// Places of the numbers.
pub(crate) mod word {
    /// `MAGIC`, written last.
    pub(crate) const MAGIC: usize = 0;
    /// `VERSION`.
    pub(crate) const VERSION: usize = 1;
    /// Size of the memory in bytes.
    pub(crate) const SIZE: usize = 2;
    /// Number of the thread, as it knows itself (`gettid`).
    pub(crate) const THREAD: usize = 3;
    /// Number of its policy, as in `sched.h`.
    pub(crate) const POLICY: usize = 4;
    /// Its real-time priority.
    pub(crate) const PRIORITY: usize = 5;
    /// The period in nanoseconds.
    pub(crate) const PERIOD: usize = 6;
    /// By how much the thread wakes early, in nanoseconds.
    pub(crate) const SPIN: usize = 7;
    /// After an overrun: 0 skips, 1 catches up, 2 stops.
    pub(crate) const ON_OVERRUN: usize = 8;
    /// The state: 0 before the first cycle, 1 in the loop, 2 stopped by an overrun.
    pub(crate) const STATE: usize = 9;
    /// When the first cycle was due, on `CLOCK_MONOTONIC`.
    pub(crate) const FIRST: usize = 10;
    /// CPU time of the thread before the first cycle, in nanoseconds.
    pub(crate) const CPU_BEFORE: usize = 11;
    /// The name, 32 bytes, ended by zeros.
    pub(crate) const NAME: usize = 12;
    /// Cycles that have started.
    pub(crate) const CYCLES: usize = 16;
    /// Cycles that ended after the next one was due.
    pub(crate) const OVERRUNS: usize = 17;
    /// Periods without a cycle.
    pub(crate) const MISSED: usize = 18;
    /// Page faults of the thread before the first cycle, without and with I/O.
    pub(crate) const MINOR_BEFORE: usize = 19;
    pub(crate) const MAJOR_BEFORE: usize = 20;
    /// Its involuntary context switches before the first cycle.
    pub(crate) const PREEMPTED_BEFORE: usize = 21;
    /// Histogram of the lateness: from when a cycle was due until it started. It consists of minimum,
    /// maximum, sum and one zero, then the buckets. Times are in nanoseconds.
    pub(crate) const LATENESS: usize = 32;
    /// Histogram of the running time: from the start of a cycle until its end.
    pub(crate) const RUNNING: usize = LATENESS + super::HISTOGRAM;
    /// Number of numbers.
    pub(crate) const END: usize = RUNNING + super::HISTOGRAM;
}

/// The size of the memory in bytes.
const SIZE: usize = word::END * 8;

/// Places in a histogram.
const MIN: usize = 0;
const MAX: usize = 1;
const SUM: usize = 2;
const BUCKETS: usize = 4;
/// Numbers of a histogram.
const HISTOGRAM: usize = BUCKETS + bucket(LARGEST) + 1;

/// The largest time with a bucket of its own: one hour.
const LARGEST: u64 = 3_600_000_000_000;
/// Number of sub-buckets of a bucket of `HdrHistogram`: 2 × 10³, rounded up to a power of two.
const SUB_BUCKETS: u64 = 2048;

/// The bucket of a time of at most [`LARGEST`].
#[expect(clippy::cast_possible_truncation, reason = "a bucket is below 34 000")]
const fn bucket(time: u64) -> usize {
    let exponent = 64 - (time | (SUB_BUCKETS - 1)).leading_zeros() - SUB_BUCKETS.trailing_zeros();
    (exponent as u64 * (SUB_BUCKETS / 2) + (time >> exponent)) as usize
}

/// Facts that are known before the first cycle.
pub(crate) struct Begin<'a> {
    pub(crate) period: u64,
    pub(crate) spin: u64,
    pub(crate) on_overrun: u64,
    pub(crate) name: Option<&'a str>,
}

/// The memory. Dropping it removes it, unless a reader or a child process has it too.
pub(crate) struct Statistics {
    numbers: &'static [AtomicU64; word::END],
    descriptor: i32,
}

impl Statistics {
    /// Creates the memory, with all of its pages allocated.
    pub(crate) fn new() -> Result<Statistics, Refused> {
        let descriptor = create()?;
        let numbers = map(descriptor).inspect_err(|_| {
            // SAFETY: the descriptor is ours, and is used no more.
            unsafe { libc::close(descriptor) };
        })?;
        Ok(Statistics { numbers, descriptor })
    }

    /// Writes the facts that are known before the first cycle. A reader waits for them.
    pub(crate) fn describe(&self, begin: &Begin<'_>) {
        let (policy, priority) = policy();
        // SAFETY: gettid takes nothing.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        let known = [
            (word::VERSION, VERSION),
            (word::SIZE, SIZE as u64),
            (word::THREAD, thread.cast_unsigned()),
            (word::POLICY, policy),
            (word::PRIORITY, priority),
            (word::PERIOD, begin.period),
            (word::SPIN, begin.spin),
            (word::ON_OVERRUN, begin.on_overrun),
            (word::LATENESS + MIN, u64::MAX),
            (word::RUNNING + MIN, u64::MAX),
        ];
        for (place, value) in known {
            self.numbers[place].store(value, Relaxed);
        }
        let own = thread_name();
        let name = begin.name.map_or(own.as_slice(), str::as_bytes);
        for (place, bytes) in (word::NAME..word::CYCLES).zip(name.chunks(8)) {
            let mut number = [0; 8];
            number[..bytes.len()].copy_from_slice(bytes);
            self.numbers[place].store(u64::from_ne_bytes(number), Relaxed);
        }
        // A reader that sees it sees all that was written before.
        self.numbers[word::MAGIC].store(MAGIC, Ordering::Release);
    }

    /// The first cycle is due at this time.
    pub(crate) fn begin(&self, first: u64) {
        let usage = usage();
        let known = [
            (word::FIRST, first),
            (word::CPU_BEFORE, cpu_time()),
            (word::MINOR_BEFORE, usage.ru_minflt.cast_unsigned()),
            (word::MAJOR_BEFORE, usage.ru_majflt.cast_unsigned()),
            (word::PREEMPTED_BEFORE, usage.ru_nivcsw.cast_unsigned()),
        ];
        for (place, value) in known {
            self.numbers[place].store(value, Relaxed);
        }
        self.numbers[word::STATE].store(1, Ordering::Release);
    }

    /// A cycle started this late.
    #[inline]
    pub(crate) fn start_cycle(&self, lateness: u64) {
        self.record(word::LATENESS, lateness);
        self.add(word::CYCLES, 1);
    }

    /// A cycle took this long.
    #[inline]
    pub(crate) fn end_cycle(&self, running: u64) {
        self.record(word::RUNNING, running);
    }

    /// A cycle ended after the next one was due.
    #[inline]
    pub(crate) fn overrun(&self) {
        self.add(word::OVERRUNS, 1);
    }

    /// These many periods are skipped.
    #[inline]
    pub(crate) fn miss(&self, periods: u64) {
        self.add(word::MISSED, periods);
    }

    /// The loop ends.
    pub(crate) fn stop(&self) {
        self.numbers[word::STATE].store(2, Relaxed);
    }

    pub(crate) fn summary(&self) -> Summary {
        let get = |place: usize| self.numbers[place].load(Relaxed);
        let cycles = get(word::CYCLES);
        Summary {
            cycles,
            overruns: get(word::OVERRUNS),
            missed: get(word::MISSED),
            lateness_min_ns: if cycles == 0 { 0 } else { get(word::LATENESS + MIN) },
            lateness_max_ns: get(word::LATENESS + MAX),
            running_max_ns: get(word::RUNNING + MAX),
            spin_ns: get(word::SPIN),
        }
    }

    /// Counts a time. The bucket comes last, so that a reader of it finds its minimum and maximum.
    #[inline]
    fn record(&self, histogram: usize, time: u64) {
        let (min, max) = (&self.numbers[histogram + MIN], &self.numbers[histogram + MAX]);
        if time < min.load(Relaxed) {
            min.store(time, Relaxed);
        }
        if time > max.load(Relaxed) {
            max.store(time, Relaxed);
        }
        self.add(histogram + SUM, time);
        self.add(histogram + BUCKETS + bucket(time.min(LARGEST)), 1);
    }

    /// Adds without a locked instruction, as there is only one writer.
    #[inline]
    fn add(&self, place: usize, n: u64) {
        let number = &self.numbers[place];
        number.store(number.load(Relaxed).wrapping_add(n), Ordering::Release);
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        let start = core::ptr::from_ref(self.numbers).cast_mut().cast();
        // SAFETY: exactly our mapping, and nothing refers to it after this.
        unsafe { libc::munmap(start, SIZE) };
        // SAFETY: the descriptor is ours, and is used no more.
        unsafe { libc::close(self.descriptor) };
    }
}

const REFUSED: &CStr = c"the kernel refuses memory for the statistics of the loop (memfd_create)";

/// Creates the memory with its size, which it keeps.
fn create() -> Result<i32, Refused> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a valid C string.
    let new = unsafe { libc::syscall(libc::SYS_memfd_create, c"latlab-period".as_ptr(), flags) };
    let descriptor = i32::try_from(new).unwrap_or(-1);
    if descriptor < 0 {
        return Err(Refused::last(REFUSED));
    }
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: ftruncate takes no pointers.
    let sized = unsafe { libc::ftruncate(descriptor, SIZE.cast_signed() as libc::off_t) } == 0;
    // SAFETY: fcntl takes a number with this request.
    if sized && unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, seals) } == 0 {
        return Ok(descriptor);
    }
    let error = Refused::last(REFUSED);
    // SAFETY: the descriptor is ours, and is used no more.
    unsafe { libc::close(descriptor) };
    Err(error)
}

fn map(descriptor: i32) -> Result<&'static [AtomicU64; word::END], Refused> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
    // SAFETY: a new mapping at a place that the kernel chooses replaces none.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), SIZE, access, flags, descriptor, 0) };
    if start == libc::MAP_FAILED {
        return Err(Refused::last(REFUSED));
    }
    // SAFETY: the mapping begins on a page and has this size; its zeros are a value of any number;
    // it is unmapped only when `Statistics` is dropped, which gives the reference to nobody.
    Ok(unsafe { &*start.cast() })
}

/// The name of the calling thread, ended by zeros.
fn thread_name() -> [u8; 16] {
    let mut name = [0; 16];
    // SAFETY: the kernel writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// CPU time of the calling thread.
fn cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid to write to, and every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The resources that the calling thread has used.
fn usage() -> libc::rusage {
    // SAFETY: rusage is made of numbers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `usage` is valid to write to.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_core::histogram::Histogram;
    use latlab_core::time::Nanos;
    use latlab_core::watch::{NUMBERS, WatchedLoop};
    use std::vec::Vec;

    fn read(statistics: &Statistics) -> WatchedLoop {
        let numbers: Vec<u64> = statistics.numbers.iter().map(|one| one.load(Relaxed)).collect();
        WatchedLoop::read(&numbers).unwrap()
    }

    #[test]
    fn statistics_are_what_latlab_watch_reads() {
        assert_eq!(word::END, NUMBERS);
        let name = Some("a name of more than thirty-two bytes");
        let begin = Begin { period: 20_000, spin: 3, on_overrun: 1, name };
        let statistics = Statistics::new().unwrap();
        statistics.describe(&begin);
        assert_eq!(read(&statistics).state, "starting");
        statistics.begin(77);
        statistics.overrun();
        statistics.miss(5);
        statistics.start_cycle(9);
        let seen = read(&statistics);
        assert_eq!(seen.name, "a name of more than thirty-two b");
        assert_eq!((seen.period, seen.spin, seen.first), (Nanos(20_000), Nanos(3), Nanos(77)));
        assert_eq!((seen.on_overrun, seen.state), ("catch-up", "running"));
        assert_eq!((seen.overruns, seen.missed, seen.lateness.count()), (1, 5, 1));
        assert_eq!((seen.policy, seen.running.count()), ("other", 0));
        assert!(seen.before.cpu > Nanos(0));
        statistics.stop();
        assert_eq!(read(&statistics).state, "stopped");
    }

    #[test]
    fn histogram_of_times_is_that_of_hdrhistogram() {
        let begin = Begin { period: 20_000, spin: 0, on_overrun: 0, name: None };
        let statistics = Statistics::new().unwrap();
        statistics.describe(&begin);
        let mut direct = Histogram::new();
        let powers = (0..41).map(|power| 1_u64 << power);
        let times = powers.flat_map(|power| [power - 1, power, power + power / 3]);
        for time in times.chain([LARGEST]) {
            statistics.end_cycle(time);
            direct.record(Nanos(time));
        }
        let running = read(&statistics).running;
        assert!(running.buckets().eq(direct.buckets()));
        assert_eq!(
            (running.min(), running.max(), running.sum()),
            (direct.min(), direct.max(), direct.sum())
        );
    }
}
