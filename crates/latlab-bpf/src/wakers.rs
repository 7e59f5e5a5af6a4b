//! Wakers: the IRQ threads that wake real-time tasks of user space, and how often such a task
//! is woken by a lower-priority task.

mod counters;

pub use counters::WakerCounters;

use crate::counting::Counting;
use crate::kernel::{has_member, has_tracepoint, variables};
use crate::object::{self, ProgramCost, lock, map};
use crate::refusal::{RecorderError, check};
use latlab_core::time::Nanos;
use latlab_mechanism::Wake;
use latlab_mechanism::violations::Violations;
use latlab_sys::root::Root;
use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, MapHandle, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

/// The loaded programs. They are removed when this is dropped or the process ends.
#[derive(Debug)]
pub struct Wakers {
    reader: RingBuffer<'static>,
    wakes: MapHandle,
    received: Arc<Mutex<Vec<Wake>>>,
    counters: WakerCounters,
    counting: Counting,
    /// Time of all runs when counting was last started.
    time_before: Nanos,
    object: Object,
    _links: Vec<Link>,
}

/// Cost of the programs while runs were counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Time for which runs were counted: the first second, and one second of each minute while
    /// there is a [`WakerCounters`]. Counting takes as long as many of the runs.
    pub counted: Nanos,
    /// Cost of each program.
    pub programs: Vec<ProgramCost>,
}

/// The BPF object, compiled by `make bpf`.
const OBJECT: &[u8] = include_bytes!("wakers.bpf.o");
/// Tracepoints of the programs, which have the same names.
const TRACEPOINTS: [&str; 3] = ["sched_waking", "softirq_entry", "softirq_raise"];
/// Time from the start of a count of runs to the start of the next.
const COUNT_INTERVAL: Nanos = Nanos::from_secs(60);
/// How long runs are counted each time.
const COUNTED: Nanos = Nanos::from_secs(1);

impl Wakers {
    /// Checks whether the programs can be loaded on this machine, without loading them:
    /// capabilities, lockdown, BTF, and the variables that the programs read.
    pub fn check() -> Result<(), RecorderError> {
        check(&Root::default())?;
        let btf = Btf::from_vmlinux().map_err(|_| RecorderError::NoBtf)?;
        places(&btf).map(drop)
    }

    /// Loads and attaches the programs. From now on, wake-ups of real-time tasks of user space by
    /// interrupt and softirq threads are reported. Errors say what the kernel lacks or refuses, and
    /// what to do.
    pub fn load() -> Result<Wakers, RecorderError> {
        check(&Root::default())?;
        let btf = Btf::from_vmlinux().map_err(|_| RecorderError::NoBtf)?;
        let places = places(&btf)?;
        object::load_explained(|| Wakers::attach(places))
    }

    fn attach(places: [u32; 3]) -> libbpf_rs::Result<Wakers> {
        let mut open = ObjectBuilder::default().name("wakers")?.open_memory(OBJECT)?;
        for mut map in open.maps_mut().filter(|map| map.name() == ".rodata.places") {
            map.set_initial_value(places.map(u32::to_ne_bytes).as_flattened())?;
        }
        let object = open.load()?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let wakes = map(&object, "wakes")?;
        Ok(Wakers {
            reader: reader(&wakes, &received)?,
            wakes,
            received,
            counters: WakerCounters::of(map(&object, ".bss.violations")?),
            counting: Counting::begin(COUNTED),
            time_before: Nanos(0),
            _links: object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>()?,
            object,
        })
    }

    /// Returns the wake-ups reported since the last call, without blocking. Each pair of a task and
    /// a thread is reported at most ten times a second.
    pub fn take(&mut self) -> Vec<Wake> {
        self.count();
        // Only the callback could fail, and it does not.
        let _consumed = self.reader.consume();
        std::mem::take(&mut *lock(&self.received))
    }

    /// Wake-ups by lower-priority tasks since the start.
    pub fn violations(&self) -> Violations {
        self.counters.violations()
    }

    /// Returns a handle by which other threads read the counts.
    pub fn counters(&self) -> WakerCounters {
        self.counters.clone()
    }

    /// Cost of the programs so far, while runs were counted. [`take`](Wakers::take) ends the
    /// counting.
    pub fn cost(&self) -> Cost {
        Cost { counted: self.counting.counted(), programs: object::cost(&self.object) }
    }

    /// Ends the counting of runs when it is due, and restarts it if there is a reader.
    fn count(&mut self) {
        let counted = self.counting.counted();
        if self.counting.end_if_due() {
            // Another process may have had runs counted in between: only the difference is of this
            // count.
            self.counters.add(counted, total_time(&self.object) - self.time_before);
        } else if self.counting.error().is_none()
            && self.counting.age() >= COUNT_INTERVAL
            && self.counters.is_read()
        {
            self.time_before = total_time(&self.object);
            self.counting.restart();
        }
    }

    /// Why runs are not counted, if they are not. Counting needs `CAP_SYS_ADMIN`.
    pub fn counting_error(&self) -> Option<&io::Error> {
        self.counting.error()
    }
}

/// For `poll`: readable when there is something to [`take`](Wakers::take).
impl AsFd for Wakers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}

/// Total time of the runs of all programs.
fn total_time(object: &Object) -> Nanos {
    object::programs(object).fold(Nanos(0), |sum, (_, program)| sum + program.time)
}

/// Returns `struct places`, by which interrupts are distinguished from tasks.
fn places(btf: &Btf<'_>) -> Result<[u32; 3], RecorderError> {
    if !TRACEPOINTS.iter().all(|name| has_tracepoint(btf, name)) {
        return Err(RecorderError::MissingFeature("scheduler and softirq tracepoints"));
    }
    let found = variables(btf);
    // On arm64 the count is in the task, not a per-CPU variable.
    let of_cpu = found.preempt_count != 0 && found.runqueues != 0;
    if !(cfg!(target_arch = "aarch64") || of_cpu) {
        return Err(RecorderError::MissingFeature("per-CPU preemption count that can be read"));
    }
    if !has_member(btf, "cfs_rq", "rq") {
        return Err(RecorderError::MissingFeature("group scheduling (CONFIG_FAIR_GROUP_SCHED)"));
    }
    Ok([found.runqueues, found.preempt_count, found.interrupts])
}

/// Returns a reader that appends reported wake-ups to `received`.
fn reader(
    wakes: &MapHandle,
    received: &Arc<Mutex<Vec<Wake>>>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let received = Arc::clone(received);
    let mut builder = RingBufferBuilder::new();
    builder.add(wakes, move |bytes| {
        lock(&received).extend(wake(bytes));
        0
    })?;
    builder.build()
}

/// Decodes a `struct pair`; none if it is incomplete.
fn wake(bytes: &[u8]) -> Option<Wake> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    let numbers: Vec<i32> = numbers.iter().copied().map(i32::from_ne_bytes).collect();
    let [task, process, thread, behind] = *numbers.as_slice() else { return None };
    let behind = (behind != 0).then_some(behind);
    rest.is_empty().then_some(Wake { task, process, thread, behind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wake_is_read_with_the_layout_of_the_c_header() {
        let bytes = |behind: i32| [7, 6, 30, behind].map(i32::to_ne_bytes).as_flattened().to_vec();
        let expected = Wake { task: 7, process: 6, thread: 30, behind: None };
        assert_eq!(wake(&bytes(0)), Some(expected));
        assert_eq!(wake(&bytes(31)), Some(Wake { behind: Some(31), ..expected }));
        assert_eq!(wake(&bytes(31)[..15]), None);
    }

    proptest! {
        #[test]
        fn wake_of_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(wake(&bytes).is_some(), bytes.len() == 16);
        }
    }
}
