//! The recorder: loads the kernel's side, says whom to watch, and hands the windows over.

mod load;

use crate::counting::Counting;
use crate::layout::{FILTER, WAKES, WATCHED};
use crate::object::{self, ProgramCost, ZERO, lock, number};
use crate::refusal::{RecorderError, check};
use latlab_core::explain::{Comm, Window};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::root::Root;
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, RingBuffer};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Whose wake-ups are watched. The idle tasks never are, and kernel threads only by number or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// These threads, by their numbers in the machine's first pid namespace.
    Tasks(Vec<u32>),
    /// Every thread of this name.
    Name(Comm),
    /// Every real-time or deadline thread of a program.
    RealTime,
}

/// A recording that goes on until this is dropped. Nothing outlives it, nor the process.
#[derive(Debug)]
pub struct Recorder {
    windows: RingBuffer<'static>,
    came: Arc<Mutex<Came>>,
    above: MapHandle,
    filter: MapHandle,
    tasks: MapHandle,
    lost: MapHandle,
    /// How many threads were not taken in.
    turned_away: u64,
    missing: Vec<&'static str>,
    counting: Counting,
    links: Vec<Link>,
    object: Object,
}

/// What was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Late wake-ups for which there was no room, since they came faster than they were read.
    pub windows: u64,
    /// Late wake-ups that could not be read; their number is part of no other.
    pub unreadable: u64,
    /// Switches between tasks that the kernel did not report, known from the next one. Wake-ups may
    /// be among them.
    pub switches: u64,
    /// Wake-ups of tasks that could not be watched, since another watched one has their place.
    pub unwatched: u64,
    /// Threads that were to be watched and are not, since another watched one has their place.
    pub threads: u64,
    /// Events that came while the CPU noted another of the same kind.
    pub events_missed: u64,
}

/// What came and was not yet handed over.
#[derive(Debug, Default)]
struct Came {
    windows: Vec<Window>,
    unreadable: u64,
    /// What counts as late.
    above: Nanos,
    /// How many were taken since it was last asked for some.
    taken: usize,
}

/// How long after its end a window is seen, at most. The kernel wakes nobody for one.
const LOOK: Nanos = Nanos::from_millis(10);
/// How many windows are taken at a time.
const BATCH: usize = 256;

impl Came {
    /// The windows, and how many were taken for them.
    fn handed_over(&mut self) -> (Vec<Window>, usize) {
        (std::mem::take(&mut self.windows), std::mem::take(&mut self.taken))
    }
}

impl Recorder {
    /// Whether this machine can record at all, before anything is started: rights, lockdown, BTF.
    pub fn check() -> Result<(), RecorderError> {
        check(&Root::default())
    }

    /// Loads the programs and attaches them. From now on, each wake-up of a watched task that takes
    /// `above` or longer is kept as a window. Errors say what the kernel lacks or refuses, and what
    /// to do.
    pub fn start(watch: &Watch, above: Nanos) -> Result<Recorder, RecorderError> {
        Recorder::check()?;
        object::loaded(|| load::load(watch, above))
    }

    /// Watches one more thread, where [`Watch::Tasks`] are watched. Of two whose numbers differ by
    /// a multiple of 4096 the second is not watched, and counted among the losses.
    pub fn watch(&mut self, pid: u32) -> io::Result<()> {
        let place = (pid % WAKES).to_ne_bytes();
        let mut task = [0; WATCHED];
        task[..4].copy_from_slice(&pid.to_ne_bytes());
        let (byte, bit) = place_in_filter(pid);
        let look = |map: &MapHandle, key| map.lookup(key, MapFlags::ANY).map_err(|e| io_error(&e));
        let there = look(&self.tasks, &place)?.unwrap_or_default();
        let there = there.first_chunk().map_or(0, |pid| u32::from_ne_bytes(*pid));
        if there != 0 && there != pid {
            self.turned_away += 1;
            return Ok(());
        }
        let mut filter = look(&self.filter, &ZERO)?.unwrap_or_default();
        filter[byte] |= bit;
        let put = |map: &MapHandle, key, value: &[u8]| map.update(key, value, MapFlags::ANY);
        put(&self.tasks, &place, &task).map_err(|e| io_error(&e))?;
        put(&self.filter, &ZERO, &filter).map_err(|e| io_error(&e))
    }

    /// Changes what counts as late, for wake-ups from now on and for those not yet read.
    pub fn set_above(&self, above: Nanos) -> io::Result<()> {
        lock(&self.came).above = above;
        self.above
            .update(&ZERO, &above.0.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| io_error(&error))
    }

    /// What counts as late.
    pub fn above(&self) -> Nanos {
        Nanos(number(&self.above, 0))
    }

    /// Hands over windows that have come, waiting at most `patience` for the first, and says whether
    /// more may be there: under load they can come faster than they are read, for a while. A signal
    /// ends the wait.
    pub fn read(&mut self, patience: Nanos, take: &mut dyn FnMut(Window)) -> io::Result<bool> {
        let end = clock::now() + patience;
        loop {
            self.counting.end_in_time();
            let consumed = self.windows.consume();
            let (came, taken) = lock(&self.came).handed_over();
            if taken < BATCH {
                consumed.map_err(|error| io_error(&error))?;
            }
            let left = end - clock::now();
            if taken > 0 || left == Nanos(0) {
                came.into_iter().for_each(take);
                return Ok(taken >= BATCH);
            }
            let wait = Duration::from_nanos(left.min(LOOK).0).max(Duration::from_millis(1));
            match self.windows.poll(wait) {
                Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {
                    return Ok(false);
                }
                Err(_) if lock(&self.came).taken >= BATCH => {}
                polled => polled.map_err(|error| io_error(&error))?,
            }
        }
    }

    /// What was not recorded since the start.
    pub fn losses(&self) -> Losses {
        Losses {
            windows: number(&self.lost, 0),
            unreadable: lock(&self.came).unreadable,
            switches: number(&self.lost, 8),
            unwatched: number(&self.lost, 16),
            threads: self.turned_away,
            events_missed: object::programs(&self.object).map(|(_, program)| program.missed).sum(),
        }
    }

    /// The tracepoints that this kernel lacks.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// What every program cost while runs were [counted](Recorder::counted).
    pub fn cost(&self) -> Vec<ProgramCost> {
        object::cost(&self.object)
    }

    /// For how long runs were counted: the first second, as counting costs as much as many a run.
    pub fn counted(&self) -> Nanos {
        self.counting.counted()
    }

    /// Why runs are not counted, if they are not: that needs `CAP_SYS_ADMIN`.
    pub fn uncounted(&self) -> Option<&io::Error> {
        self.counting.refused()
    }
}

/// Where a thread's bit lies among the bytes of the filter, which is made of words of the machine.
fn place_in_filter(pid: u32) -> (usize, u8) {
    let word = (pid >> 6) as usize % FILTER;
    let bytes = (1_u64 << (pid & 63)).to_ne_bytes();
    let byte = bytes.iter().position(|byte| *byte != 0).unwrap_or(0);
    (word * 8 + byte, bytes[byte])
}

fn io_error(error: &libbpf_rs::Error) -> io::Error {
    io::Error::other(format!("{error:#}"))
}
