//! Reports the requests of a program's threads to the kernel, and how the threads are scheduled.

mod layout;

pub(crate) use layout::observed;
pub use layout::{Observed, UserStack};

use crate::kernel::{PAGE_FAULTS, has_tracepoint, needs_page_faults, variables};
use crate::object::{self, lock, map, read_u64};
use crate::refusal::{RecorderError, check};
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use syscalls::Sysno;

/// Which processes and threads are observed from the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observe {
    /// The processes that this one starts.
    pub parent: Option<u32>,
    /// Threads of every policy; otherwise only real-time ones.
    pub any_policy: bool,
}

/// The loaded programs, which observe the threads of the watched processes and of the
/// processes that these start. They are removed when this is dropped or the process ends.
#[derive(Debug)]
pub struct Checker {
    reader: RingBuffer<'static>,
    received: Arc<Mutex<Vec<Observed>>>,
    processes: MapHandle,
    missed: MapHandle,
    missing: Vec<String>,
    links: Vec<Link>,
    object: Object,
}

/// The BPF object, compiled by `make bpf`.
const OBJECT: &[u8] = include_bytes!("check.bpf.o");
/// Number of events that are read at a time.
const BATCH: usize = 2000;
/// Return value of the callback that makes libbpf stop reading for now.
const STOP: i32 = -1;

impl Checker {
    /// Checks whether the programs can be loaded on this machine, without loading them.
    pub fn check() -> Result<(), RecorderError> {
        check(&Root::default())?;
        let btf = Btf::from_vmlinux().map_err(|_| RecorderError::NoBtf)?;
        if has_tracepoint(&btf, "sys_enter") {
            return Ok(());
        }
        Err(RecorderError::MissingFeature("tracepoints of system calls"))
    }

    /// Loads and attaches the programs. Errors say what the kernel lacks or refuses, and what to do.
    pub fn start(observe: Observe) -> Result<Checker, RecorderError> {
        Checker::check()?;
        // Not every kernel lets programs run at the end of functions.
        object::load_explained(|| Checker::load(observe, true))
            .or_else(|_| object::load_explained(|| Checker::load(observe, false)))
    }

    fn load(observe: Observe, with_fault_end: bool) -> libbpf_rs::Result<Checker> {
        let mut open = ObjectBuilder::default().name("check")?.open_memory(OBJECT)?;
        let btf = Btf::from_vmlinux()?;
        let found = variables(&btf);
        // arm64 keeps the preemption count in the task.
        let known =
            cfg!(target_arch = "aarch64") || found.runqueues != 0 && found.preempt_count != 0;
        let interrupts = if known { found.interrupts } else { 0 };
        let places = [found.runqueues, found.preempt_count, interrupts];
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some(".rodata.places") => map.set_initial_value(&words(&places))?,
                Some(".rodata.check_settings") => map.set_initial_value(&settings(observe))?,
                _ => {}
            }
        }
        let mut missing = Vec::new();
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let there = match &*name {
                FAULT_END => with_fault_end,
                name if MARKS.contains(&name) => true,
                PAGE_FAULTS => needs_page_faults(&btf),
                _ => has_tracepoint(&btf, &name),
            };
            if !there {
                program.set_autoload(false);
                missing.push(name);
            }
        }
        let object = open.load()?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let links = attach(&object, &mut missing)?;
        if !known {
            missing.push("preemption count".to_owned());
        }
        Ok(Checker {
            reader: reader(&map(&object, "notes")?, &received)?,
            received,
            processes: map(&object, "processes")?,
            missed: map(&object, ".bss.missed")?,
            missing,
            links,
            object,
        })
    }

    /// Watches one more process.
    pub fn watch(&self, process: u32) -> io::Result<()> {
        let (key, value) = (process.to_ne_bytes(), [0; layout::PROCESS]);
        let put = self.processes.update(&key, &value, MapFlags::ANY);
        put.map_err(|error| io_error(&error))
    }

    /// Observes a mark from now on, in each process that maps the file: the instruction at that offset
    /// in it, where a part of a cycle begins or, if `is_end`, ends. It must be a NOP.
    pub fn attach_mark(&mut self, file: &Path, offset: usize, is_end: bool) -> io::Result<()> {
        let name = MARKS[usize::from(is_end)];
        let mut programs = self.object.progs_mut();
        let program = programs.find(|program| program.name() == name);
        let program = program.ok_or_else(|| io::Error::other("the object lacks a program"))?;
        let every_process = -1;
        let link = program.attach_uprobe(false, every_process, file, offset);
        self.links.push(link.map_err(|error| io_error(&error))?);
        Ok(())
    }

    /// Calls `take` with the new events in the order of time, and waits at most `timeout` for the
    /// first. Returns whether there may be more.
    pub fn read(&mut self, timeout: Nanos, take: &mut dyn FnMut(Observed)) -> io::Result<bool> {
        // The callback fails after each batch.
        let _consumed = self.reader.consume();
        let mut events = std::mem::take(&mut *lock(&self.received));
        if events.is_empty() && timeout > Nanos(0) {
            match self.reader.poll(Duration::from_nanos(timeout.0)) {
                Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {}
                Err(_) if !lock(&self.received).is_empty() => {}
                polled => polled.map_err(|error| io_error(&error))?,
            }
            events = std::mem::take(&mut *lock(&self.received));
        }
        let more = events.len() >= BATCH;
        events.into_iter().for_each(take);
        Ok(more)
    }

    /// Number of events that found no room in the buffer, or came while the CPU ran the same
    /// program for another event. Two kinds of the latter do not count, because no breach is
    /// missed. System calls: the judge leaves out cycles in which the start or the end of a call is
    /// missing. Ends of page faults: without them, only the faults' duration is unknown.
    pub fn lost(&self) -> u64 {
        let counts = |name: &str| !matches!(name, "sys_enter" | "sys_exit" | FAULT_END);
        read_u64(&self.missed, 0) + object::missed(&self.object, counts)
    }

    /// Number of processes that are not watched because too many are.
    pub fn unwatched(&self) -> u64 {
        read_u64(&self.missed, 8)
    }

    /// Names of the events and features that this kernel lacks.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }
}

/// The program that runs at the end of a page fault. It is attached to a function, not to a
/// tracepoint.
const FAULT_END: &str = "handle_mm_fault";

/// The programs that run at marks, where a part of a cycle begins and ends.
const MARKS: [&str; 2] = ["mark_begin", "mark_end"];

/// Attaches the programs. One at a function of the kernel may fail.
fn attach(object: &Object, missing: &mut Vec<String>) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    for program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if missing.contains(&name) || MARKS.contains(&&*name) {
            continue;
        }
        if name == PAGE_FAULTS {
            links.extend(object::attach_to_page_faults(&program)?);
            continue;
        }
        match program.attach() {
            Ok(link) => links.push(link),
            Err(_) if name == FAULT_END => missing.push(name),
            Err(error) => return Err(error),
        }
    }
    Ok(links)
}

/// Encodes a `struct check_settings`.
fn settings(observe: Observe) -> Vec<u8> {
    let waits = [Sysno::nanosleep, Sysno::clock_nanosleep, Sysno::mmap];
    let scheduling = [Sysno::sched_setscheduler, Sysno::sched_setparam, Sysno::sched_setattr];
    let numbers = [waits, scheduling, [Sysno::mlock, Sysno::mlock2, Sysno::mlockall]].concat();
    let numbers = numbers
        .into_iter()
        .chain([Sysno::futex])
        .map(|call| u32::try_from(call.id()).unwrap_or(u32::MAX));
    let parent = [observe.parent.unwrap_or(0)].into_iter();
    let all: Vec<u32> = parent.chain(numbers).chain([u32::from(observe.any_policy)]).collect();
    words(&all)
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Returns a reader that appends events to `received`.
fn reader(
    notes: &MapHandle,
    received: &Arc<Mutex<Vec<Observed>>>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let received = Arc::clone(received);
    let mut builder = RingBufferBuilder::new();
    builder.add(notes, move |bytes| {
        let mut received = lock(&received);
        received.extend(observed(bytes));
        if received.len() < BATCH { 0 } else { STOP }
    })?;
    builder.build()
}

fn io_error(error: &libbpf_rs::Error) -> io::Error {
    io::Error::other(format!("{error:#}"))
}
