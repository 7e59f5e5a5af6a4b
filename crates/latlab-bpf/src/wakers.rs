//! The wakers: which interrupt threads wake the real-time tasks of programs, and how often one is
//! woken by a task of lower priority.

mod meter;

pub use meter::Meter;

use crate::counting::Counting;
use crate::kernel::{has_member, has_tracepoint, variables};
use crate::object::{self, ProgramCost, lock, map};
use crate::refusal::{RecorderError, check};
use latlab_core::mechanism::Wake;
use latlab_core::mechanism::watching::Violations;
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, MapHandle, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

/// Wake-ups that are watched until this is dropped. Nothing outlives it, nor the process.
#[derive(Debug)]
pub struct Wakers {
    reader: RingBuffer<'static>,
    wakes: MapHandle,
    came: Arc<Mutex<Vec<Wake>>>,
    meter: Meter,
    counting: Counting,
    /// What runs had taken when counting began last.
    taken: Nanos,
    object: Object,
    _links: Vec<Link>,
}

/// What watching cost while runs were counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// For how long they were counted: the first second, and one of each minute while there is a
    /// [`Meter`]. Counting costs as much as many a run.
    pub counted: Nanos,
    /// Each program.
    pub programs: Vec<ProgramCost>,
}

/// The kernel's side, as `make bpf` compiles it.
const OBJECT: &[u8] = include_bytes!("wakers.bpf.o");
/// What the programs are attached to; they have these names.
const TRACEPOINTS: [&str; 3] = ["sched_waking", "softirq_entry", "softirq_raise"];
/// From the begin of one count of runs to that of the next.
const EVERY: Nanos = Nanos::from_secs(60);

impl Wakers {
    /// Whether this machine's kernel can be watched, before anything is started: rights, lockdown,
    /// BTF, and what the programs read.
    pub fn check() -> Result<(), RecorderError> {
        check(&Root::default())?;
        let btf = Btf::from_vmlinux().map_err(|_| RecorderError::NoBtf)?;
        places(&btf).map(drop)
    }

    /// Loads the programs and attaches them. From now on, whoever wakes a real-time task of a program
    /// is told, if it is an interrupt or a soft-irq thread. Errors say what the kernel lacks or
    /// refuses, and what to do.
    pub fn load() -> Result<Wakers, RecorderError> {
        check(&Root::default())?;
        let btf = Btf::from_vmlinux().map_err(|_| RecorderError::NoBtf)?;
        let places = places(&btf)?;
        object::loaded(|| Wakers::loaded(places))
    }

    fn loaded(places: [u32; 2]) -> libbpf_rs::Result<Wakers> {
        let mut open = ObjectBuilder::default().name("wakers")?.open_memory(OBJECT)?;
        for mut map in open.maps_mut().filter(|map| map.name() == ".rodata.places") {
            map.set_initial_value(places.map(u32::to_ne_bytes).as_flattened())?;
        }
        let object = open.load()?;
        let came = Arc::new(Mutex::new(Vec::new()));
        let wakes = map(&object, "wakes")?;
        Ok(Wakers {
            reader: reader(&wakes, &came)?,
            wakes,
            came,
            meter: Meter::of(map(&object, ".bss.violations")?),
            counting: Counting::begin(),
            taken: Nanos(0),
            _links: object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>()?,
            object,
        })
    }

    /// The wake-ups that were told since this was last called, without waiting. Each pair of a task
    /// and a thread is told ten times a second at most.
    pub fn take(&mut self) -> Vec<Wake> {
        self.count();
        // Only what is done with each could fail, and that does not.
        let _consumed = self.reader.consume();
        std::mem::take(&mut *lock(&self.came))
    }

    /// What violated the rule since the start.
    pub fn violations(&self) -> Violations {
        self.meter.violations()
    }

    /// By which another thread knows what was counted, while this is there.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// What it cost so far, while runs were counted. [`take`](Wakers::take) ends that in time.
    pub fn cost(&self) -> Cost {
        Cost { counted: self.counting.counted(), programs: object::cost(&self.object) }
    }

    /// Ends the counting of runs in its time, and begins anew where somebody wants to know.
    fn count(&mut self) {
        let counted = self.counting.counted();
        if self.counting.end_in_time() {
            // Somebody else may have had them counted in between.
            self.meter.add(counted, time(&self.object) - self.taken);
        } else if self.counting.refused().is_none()
            && self.counting.age() >= EVERY
            && self.meter.is_read()
        {
            self.taken = time(&self.object);
            self.counting.again();
        }
    }

    /// Why runs are not counted, if they are not: that needs `CAP_SYS_ADMIN`.
    pub fn uncounted(&self) -> Option<&io::Error> {
        self.counting.refused()
    }
}

/// To be waited for: it can be read when there is something to [`take`](Wakers::take).
impl AsFd for Wakers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}

/// What all programs' runs have taken.
fn time(object: &Object) -> Nanos {
    object::programs(object).fold(Nanos(0), |sum, (_, program)| sum + program.time)
}

/// `struct places`: where the variables lie by which interrupts are told from tasks.
fn places(btf: &Btf<'_>) -> Result<[u32; 2], RecorderError> {
    if !TRACEPOINTS.iter().all(|name| has_tracepoint(btf, name)) {
        return Err(RecorderError::Lacks("tracepoints of the scheduler and of softirqs"));
    }
    let found = variables(btf);
    if found.preempt_count == 0 || found.runqueues == 0 {
        return Err(RecorderError::Lacks("count of interrupts that can be read for each CPU"));
    }
    if !has_member(btf, "cfs_rq", "rq") {
        return Err(RecorderError::Lacks("scheduling of groups (CONFIG_FAIR_GROUP_SCHED)"));
    }
    Ok([found.runqueues, found.preempt_count])
}

/// Reads what is told, into `came`.
fn reader(
    wakes: &MapHandle,
    came: &Arc<Mutex<Vec<Wake>>>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let came = Arc::clone(came);
    let mut builder = RingBufferBuilder::new();
    builder.add(wakes, move |bytes| {
        lock(&came).extend(wake(bytes));
        0
    })?;
    builder.build()
}

/// A `struct pair`; none if it is not whole.
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
