//! The recorder: loads the kernel's side, says whom to watch, and hands the windows over.

use crate::kernel;
use crate::layout::{FILTER, Settings, WATCHED, window};
use crate::refusal::{RecorderError, check, refused};
use latlab_core::explain::{Comm, Window};
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use latlab_sys::{bpf, clock};
use libbpf_rs::btf::Btf;
use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel,
    RingBuffer, RingBufferBuilder,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whose wake-ups are watched. The idle tasks never are, and kernel threads only by number or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// These threads, by the kernel's numbers.
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
    missing: Vec<&'static str>,
    counting: io::Result<File>,
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
    /// Tasks that could not be watched: there is room for 2048 at a time.
    pub tasks: u64,
    /// Events that came while the CPU noted another of the same kind.
    pub events_missed: u64,
}

/// What a program cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    /// Its name, which is that of the tracepoint.
    pub name: String,
    /// How often it ran.
    pub runs: u64,
    /// How long that took.
    pub time: Nanos,
    /// How many instructions the verifier followed; 0 before Linux 5.16.
    pub verified: u32,
    /// The bytes of machine code that it became; 0 where it is interpreted.
    pub machine_code: u32,
}

/// What came and was not yet handed over.
#[derive(Debug, Default)]
struct Came {
    windows: Vec<Window>,
    unreadable: u64,
}

/// The kernel's side, as `make bpf` compiles it.
const OBJECT: &[u8] = include_bytes!("recorder.bpf.o");
/// What is later than this is worth a stack, which takes about a microsecond.
const SLOW: Nanos = Nanos::from_micros(5);
/// How long after its end a window is seen, at most. The kernel wakes nobody for one.
const LOOK: Nanos = Nanos::from_millis(10);
const ZERO: [u8; 4] = [0; 4];
/// What libbpf said since the recorder was last started. It has one voice for the whole process.
static SAID: Mutex<String> = Mutex::new(String::new());

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
        lock(&SAID).clear();
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| lock(&SAID).push_str(&text))));
        load(watch, above).map_err(|error| refused(&error, &lock(&SAID)))
    }

    /// Watches one more thread, where [`Watch::Tasks`] are watched.
    pub fn watch(&self, pid: u32) -> io::Result<()> {
        let (byte, bit) = place_in_filter(pid);
        let watch = || {
            let mut filter = self.filter.lookup(&ZERO, MapFlags::ANY)?.unwrap_or_default();
            filter[byte] |= bit;
            self.tasks.update(&pid.to_ne_bytes(), &[0; WATCHED], MapFlags::ANY)?;
            self.filter.update(&ZERO, &filter, MapFlags::ANY)
        };
        watch().map_err(|error| io_error(&error))
    }

    /// Changes what counts as late, for wake-ups from now on.
    pub fn set_above(&self, above: Nanos) -> io::Result<()> {
        self.above
            .update(&ZERO, &above.0.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| io_error(&error))
    }

    /// What counts as late.
    pub fn above(&self) -> Nanos {
        Nanos(number(&self.above, 0))
    }

    /// Hands over the windows that have come, waiting at most `patience` for the first. A signal
    /// ends the wait.
    pub fn read(&mut self, patience: Nanos, take: &mut dyn FnMut(Window)) -> io::Result<()> {
        let end = clock::now() + patience;
        loop {
            self.windows.consume().map_err(|error| io_error(&error))?;
            let came = std::mem::take(&mut lock(&self.came).windows);
            let left = end - clock::now();
            if !came.is_empty() || left == Nanos(0) {
                came.into_iter().for_each(take);
                return Ok(());
            }
            let wait = Duration::from_nanos(left.min(LOOK).0).max(Duration::from_millis(1));
            match self.windows.poll(wait) {
                Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => return Ok(()),
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
            tasks: number(&self.lost, 16),
            events_missed: self.programs().map(|(_, program)| program.missed).sum(),
        }
    }

    /// The tracepoints that this kernel lacks.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// What every program cost since the start; without runs where [`Recorder::uncounted`].
    pub fn cost(&self) -> Vec<ProgramCost> {
        let cost = self.programs().map(|(name, program)| ProgramCost {
            name,
            runs: program.runs,
            time: program.time,
            verified: program.verified,
            machine_code: program.machine_code,
        });
        cost.collect()
    }

    /// Why runs are not counted, if they are not: that needs `CAP_SYS_ADMIN`.
    pub fn uncounted(&self) -> Option<&io::Error> {
        self.counting.as_ref().err()
    }

    fn programs(&self) -> impl Iterator<Item = (String, bpf::Program)> {
        self.object.progs().filter_map(|program| {
            let name = program.name().to_string_lossy().into_owned();
            Some((name, bpf::program(program.as_fd()).ok()?))
        })
    }
}

fn load(watch: &Watch, above: Nanos) -> libbpf_rs::Result<Recorder> {
    let mut open = ObjectBuilder::default().name("recorder")?.open_memory(OBJECT)?;
    let btf = Btf::from_vmlinux()?;
    let missing = leave_out(&mut open, &btf);
    configure(&mut open, watch, above, &btf)?;
    let object = open.load()?;
    let came = Arc::new(Mutex::new(Came::default()));
    let mut recorder = Recorder {
        windows: reader(&object, &came)?,
        came,
        above: map(&object, ".data.above")?,
        filter: map(&object, ".bss.filter")?,
        tasks: map(&object, "tasks")?,
        lost: map(&object, ".bss.lost")?,
        missing,
        counting: bpf::count_runs(),
        links: Vec::new(),
        object,
    };
    if let Watch::Tasks(pids) = watch {
        pids.iter().try_for_each(|pid| recorder.watch(*pid))?;
    }
    recorder.links = attach(&recorder)?;
    Ok(recorder)
}

fn attach(recorder: &Recorder) -> libbpf_rs::Result<Vec<Link>> {
    let programs = recorder.object.progs_mut();
    let there =
        programs.filter(|program| !recorder.missing.iter().any(|name| program.name() == *name));
    there.map(|program| program.attach()).collect()
}

/// Leaves out what this kernel has no tracepoint for, and says which those are.
fn leave_out(open: &mut OpenObject, btf: &Btf<'_>) -> Vec<&'static str> {
    let mut missing = Vec::new();
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if !kernel::has_tracepoint(btf, &name) {
            program.set_autoload(false);
            missing.extend(kernel::TRACEPOINTS.iter().filter(|known| **known == name));
        }
    }
    missing
}

fn configure(
    open: &mut OpenObject,
    watch: &Watch,
    above: Nanos,
    btf: &Btf<'_>,
) -> libbpf_rs::Result<()> {
    let (how, name) = match watch {
        Watch::Tasks(_) => (0, Comm::default()),
        Watch::Name(name) => (1, *name),
        Watch::RealTime => (2, Comm::default()),
    };
    let variables = kernel::variables(btf);
    let settings = Settings { name, slow: SLOW, variables, how, goes_on: kernel::goes_on() };
    for mut map in open.maps_mut() {
        match map.name().to_str() {
            Some(".rodata.settings") => map.set_initial_value(&settings.bytes())?,
            Some(".data.above") => map.set_initial_value(&above.0.to_ne_bytes())?,
            Some("rings") => {
                let cpus = libbpf_rs::num_possible_cpus()?;
                map.set_max_entries(u32::try_from(cpus).unwrap_or(u32::MAX))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads what is handed over, into `came`.
fn reader(object: &Object, came: &Arc<Mutex<Came>>) -> libbpf_rs::Result<RingBuffer<'static>> {
    let came = Arc::clone(came);
    let map = map(object, "windows")?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&map, move |bytes| {
        let mut came = lock(&came);
        match window(bytes) {
            Some(window) => came.windows.push(window),
            None => came.unreadable += 1,
        }
        0
    })?;
    builder.build()
}

fn map(object: &Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    let found = object.maps().find(|map| map.name() == OsStr::new(name));
    found.map_or_else(
        || Err(io::Error::other(format!("the object has no map '{name}'")).into()),
        |map| MapHandle::try_from(&map),
    )
}

/// The eight bytes at `at` in a map that is one value.
fn number(map: &MapHandle, at: usize) -> u64 {
    let value = map.lookup(&ZERO, MapFlags::ANY).ok().flatten().unwrap_or_default();
    value.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
