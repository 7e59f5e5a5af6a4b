//! The flight recorder: loads the programs, selects the watched tasks, and returns windows.

mod load;

use crate::counting::Counting;
use crate::layout::{self, FILTER, WAKES, WATCHED};
use crate::object::{self, ProgramCost, ZERO, lock, read_u64};
use crate::refusal::{RecorderError, check};
use latlab_core::explain::{Comm, Event, Window};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::root::Root;
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, RingBuffer};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Tasks whose wake-ups are watched. Idle tasks never are, and kernel threads only by PID or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// These threads, by their PIDs in the initial PID namespace.
    Tasks(Vec<u32>),
    /// All threads of this name.
    Name(Comm),
    /// All real-time and deadline threads of user space.
    RealTime,
}

/// Which context switches are recorded, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// All; with [`Watch::Tasks`] until the task sleeps again, so that its own clock may be read. A
    /// wait for a lock of the kernel is no sleep.
    Full,
    /// All. Latencies end at the switch to the task.
    UntilSwitch,
    /// Only switches while a watched task waits for the CPU: the cheapest. Latencies end at the
    /// switch to the task.
    Sparse,
    /// All, and each interrupt from its entry on, whether it expires timers or not: for tasks that do
    /// not sleep. Latencies end at the switch to the task.
    Running,
}

/// A recording in progress. The programs are removed when this is dropped or the process ends. While one
/// thread waits for windows, others can do everything but read them.
#[derive(Debug)]
pub struct Recorder {
    /// Locked while windows are awaited.
    windows: Mutex<RingBuffer<'static>>,
    received: Arc<Mutex<Received>>,
    threshold: MapHandle,
    filter: MapHandle,
    tasks: MapHandle,
    lost: MapHandle,
    rings: MapHandle,
    /// Number of threads not watched because their slot is in use. Locked while the watched threads
    /// change.
    colliding: Mutex<u64>,
    missing: Vec<&'static str>,
    counting: Mutex<Counting>,
    /// When all programs were attached.
    began: Nanos,
    /// The programs are attached while these exist.
    _links: Vec<Link>,
    object: Object,
}

/// Numbers of events and wake-ups that were not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Late wake-ups that did not fit into the ring buffer because they came faster than they were
    /// read.
    pub windows: u64,
    /// Late wake-ups that could not be decoded. They are in no other count.
    pub unreadable: u64,
    /// Context switches that the kernel did not report, detected by the next one. Wake-ups may be
    /// among them.
    pub switches: u64,
    /// Wake-ups of tasks that were not watched because another watched task has their slot.
    pub unwatched: u64,
    /// Threads that were to be watched and are not because another watched thread has their slot.
    pub threads: u64,
    /// Events that came while the CPU recorded another of the same tracepoint.
    pub events_missed: u64,
}

/// The latest events of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latest {
    /// The events in the order of time.
    pub events: Vec<Event>,
    /// Number of entries that the CPU had written up to then, to be asked for the next ones.
    pub seen: u64,
    /// Whether entries between the ones seen before and these were overwritten.
    pub torn: bool,
}

/// Windows read from the ring buffer and not yet returned.
#[derive(Debug, Default)]
struct Received {
    windows: Vec<Window>,
    unreadable: u64,
    /// Latency from which on a wake-up is late.
    threshold: Nanos,
    /// Number of entries read from the ring buffer since the last call.
    entries: usize,
}

/// Longest time from the end of a window until it is read. The programs do not wake the reader unless
/// a quarter of the ring buffer is full.
const POLL_INTERVAL: Nanos = Nanos::from_millis(100);
/// Largest number of windows read at a time.
const BATCH: usize = 256;

impl Received {
    /// Takes the windows, and the number of entries read for them.
    fn take(&mut self) -> (Vec<Window>, usize) {
        (std::mem::take(&mut self.windows), std::mem::take(&mut self.entries))
    }
}

impl Recorder {
    /// Checks whether this machine can record, without loading anything: capabilities, lockdown,
    /// BTF.
    pub fn check() -> Result<(), RecorderError> {
        check(&Root::default())
    }

    /// Loads and attaches the programs. From now on, each wake-up of a watched task with a latency
    /// of at least `threshold` is kept as a window. Errors say what the kernel lacks or refuses,
    /// and what to do.
    pub fn start(watch: &Watch, threshold: Nanos) -> Result<Recorder, RecorderError> {
        Recorder::start_with(watch, threshold, Detail::Full)
    }

    /// The same with another amount of detail.
    pub fn start_with(
        watch: &Watch,
        threshold: Nanos,
        detail: Detail,
    ) -> Result<Recorder, RecorderError> {
        Recorder::check()?;
        // To begin to trace a function, the kernel changes its own code and waits for all tasks: that
        // would disturb what probes measure. Not every kernel allows it, and none says so before.
        let functions = detail != Detail::Full;
        object::load_explained(|| match load::load(watch, threshold, detail, functions) {
            Err(_) if functions => load::load(watch, threshold, detail, false),
            loaded => loaded,
        })
    }

    /// Watches one more thread, with [`Watch::Tasks`]. Of two threads whose PIDs differ by a
    /// multiple of 4096 the second is not watched, but counted among the losses.
    pub fn watch(&self, pid: u32) -> io::Result<()> {
        let mut colliding = lock(&self.colliding);
        let slot = (pid % WAKES).to_ne_bytes();
        let mut task = [0; WATCHED];
        task[..4].copy_from_slice(&pid.to_ne_bytes());
        let there = self.watched_in(slot)?;
        if there != 0 && there != pid {
            *colliding += 1;
            return Ok(());
        }
        let filter = self.filter.lookup(&ZERO, MapFlags::ANY).map_err(|e| io_error(&e))?;
        let mut filter = filter.unwrap_or_default();
        if let Some(byte) = filter.get_mut((pid % FILTER) as usize) {
            *byte = 1;
        }
        let put = |map: &MapHandle, key, value: &[u8]| map.update(key, value, MapFlags::ANY);
        put(&self.tasks, &slot, &task).map_err(|e| io_error(&e))?;
        put(&self.filter, &ZERO, &filter).map_err(|e| io_error(&e))
    }

    /// Stops watching a thread that has ended, so that another may have its slot. The programs free the
    /// slot of a thread that was watched when it ended.
    pub fn forget(&self, pid: u32) -> io::Result<()> {
        let _changing = lock(&self.colliding);
        let slot = (pid % WAKES).to_ne_bytes();
        if self.watched_in(slot)? != pid {
            return Ok(());
        }
        self.tasks.update(&slot, &[0; WATCHED], MapFlags::ANY).map_err(|e| io_error(&e))
    }

    /// The thread that has a slot; 0 if none has.
    fn watched_in(&self, slot: [u8; 4]) -> io::Result<u32> {
        let task = self.tasks.lookup(&slot, MapFlags::ANY).map_err(|e| io_error(&e))?;
        Ok(task.unwrap_or_default().first_chunk().map_or(0, |pid| u32::from_ne_bytes(*pid)))
    }

    /// Sets the latency from which on a wake-up is late: for wake-ups from now on, and for recorded
    /// wake-ups that are not yet read.
    pub fn set_threshold(&self, threshold: Nanos) -> io::Result<()> {
        // One at a time: the programs and the reader get the same.
        let mut received = lock(&self.received);
        received.threshold = threshold;
        self.threshold
            .update(&ZERO, &threshold.0.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| io_error(&error))
    }

    /// Latency from which on a wake-up is late.
    pub fn threshold(&self) -> Nanos {
        Nanos(read_u64(&self.threshold, 0))
    }

    /// Calls `take` with each new window, and waits at most `timeout` for the first. Returns
    /// whether there may be more: under load, windows can come faster than they are read for a
    /// while. A signal ends the wait.
    pub fn read(&self, timeout: Nanos, take: &mut dyn FnMut(Window)) -> io::Result<bool> {
        let ring = lock(&self.windows);
        let end = clock::now() + timeout;
        loop {
            lock(&self.counting).end_if_due();
            let consumed = ring.consume();
            let (windows, entries) = lock(&self.received).take();
            if entries < BATCH {
                consumed.map_err(|error| io_error(&error))?;
            }
            let left = end - clock::now();
            if entries > 0 || left == Nanos(0) {
                drop(ring);
                // What delayed a task that was due before was not recorded.
                windows.into_iter().filter(|window| window.due >= self.began).for_each(take);
                return Ok(entries >= BATCH);
            }
            let wait =
                Duration::from_nanos(left.min(POLL_INTERVAL).0).max(Duration::from_millis(1));
            match ring.poll(wait) {
                Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {
                    return Ok(false);
                }
                Err(_) if lock(&self.received).entries >= BATCH => {}
                polled => polled.map_err(|error| io_error(&error))?,
            }
        }
    }

    /// The last events of a CPU, at most 15360, in the order of time.
    pub fn last_events(&self, cpu: u32) -> io::Result<Vec<Event>> {
        let ring = self.rings.lookup(&cpu.to_ne_bytes(), MapFlags::ANY);
        Ok(layout::ring(&ring.map_err(|error| io_error(&error))?.unwrap_or_default()))
    }

    /// The events of a CPU after the first `seen` and until this moment, and some before them, if so many
    /// are kept.
    pub fn events_after(&self, cpu: u32, seen: u64, until: Nanos) -> io::Result<Latest> {
        let ring = self.rings.lookup(&cpu.to_ne_bytes(), MapFlags::ANY);
        let bytes = ring.map_err(|error| io_error(&error))?.unwrap_or_default();
        Ok(layout::ring_after(&bytes, seen, until))
    }

    /// Number of CPUs that there may be.
    pub fn cpus(&self) -> u32 {
        self.rings.max_entries()
    }

    /// Numbers of events and wake-ups that were not recorded since the start.
    pub fn losses(&self) -> Losses {
        Losses {
            windows: read_u64(&self.lost, 0),
            unreadable: lock(&self.received).unreadable,
            switches: read_u64(&self.lost, 8),
            unwatched: read_u64(&self.lost, 16),
            threads: *lock(&self.colliding),
            events_missed: object::missed(&self.object, |_| true),
        }
    }

    /// Tracepoints that this kernel lacks.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Cost of each program while runs were [counted](Recorder::counted).
    pub fn cost(&self) -> Vec<ProgramCost> {
        object::cost(&self.object)
    }

    /// Time for which runs were counted: the first 200 ms only, as counting takes as long as many of
    /// the runs.
    pub fn counted(&self) -> Nanos {
        lock(&self.counting).counted()
    }

    /// Why runs are not counted, if they are not. Counting needs `CAP_SYS_ADMIN`.
    pub fn counting_error(&self) -> Option<String> {
        lock(&self.counting).error().map(ToString::to_string)
    }
}

fn io_error(error: &libbpf_rs::Error) -> io::Error {
    io::Error::other(format!("{error:#}"))
}
