//! Start of a recording: the programs are loaded, configured and attached.

use super::{BATCH, Detail, Received, Recorder, Watch};
use crate::counting::Counting;
use crate::kernel;
use crate::layout::{RUNNING, Settings, duration, window};
use crate::object::{self, lock, map};
use latlab_core::explain::Comm;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::sync::{Arc, Mutex};

/// The BPF object, compiled by `make bpf`.
const OBJECT: &[u8] = include_bytes!("../recorder.bpf.o");
/// Latency above which a stack is taken, which costs about a microsecond.
const SLOW: Nanos = Nanos::from_micros(5);
/// Size of the ring buffer with [`Detail::Sparse`], in bytes: the windows of a second.
const SPARSE_ROOM: u32 = 2 << 20;
/// How long runs are counted: as long as probes warm up by default.
const COUNTED: Nanos = Nanos::from_millis(200);
/// Return value of the callback that makes libbpf stop reading for now.
const STOP: i32 = -1;

/// Starts a recorder. Errors are those of the kernel or of libbpf.
pub(super) fn load(
    watch: &Watch,
    threshold: Nanos,
    detail: Detail,
    functions: bool,
) -> libbpf_rs::Result<Recorder> {
    let mut open = ObjectBuilder::default().name("recorder")?.open_memory(OBJECT)?;
    let btf = Btf::from_vmlinux()?;
    let local_timer = detail != Detail::Running && kernel::has_local_timer(&btf);
    let cpus = libbpf_rs::num_possible_cpus()?;
    let later = detail == Detail::Full && matches!(watch, Watch::Tasks(_));
    disable_useless(&mut open, &btf, (local_timer, cpus), (detail == Detail::Sparse, later));
    let missing = disable_missing(&mut open, &btf, functions);
    configure(&mut open, (watch, threshold, detail, later), (local_timer, cpus), &btf)?;
    let object = open.load()?;
    let received = Arc::new(Mutex::new(Received { threshold, ..Received::default() }));
    let rings = map(&object, "rings")?;
    begin_rings(&rings)?;
    let links = attach(&object)?;
    let recorder = Recorder {
        windows: Mutex::new(reader(&object, &received)?),
        received,
        threshold: map(&object, ".data.above")?,
        filter: map(&object, ".bss.filter")?,
        tasks: map(&object, "tasks")?,
        lost: map(&object, ".bss.lost")?,
        rings,
        colliding: Mutex::default(),
        missing,
        counting: Mutex::new(Counting::begin(COUNTED)),
        began: clock::now(),
        _links: links,
        object,
    };
    if let Watch::Tasks(pids) = watch {
        pids.iter().try_for_each(|pid| recorder.watch(*pid)).map_err(libbpf_rs::Error::from)?;
    }
    Ok(recorder)
}

/// Marks the running task of each CPU as unknown: ID 0 would be the idle task.
fn begin_rings(rings: &MapHandle) -> libbpf_rs::Result<()> {
    let mut ring = vec![0; rings.value_size() as usize];
    ring[RUNNING..RUNNING + 4].fill(u8::MAX);
    (0..rings.max_entries())
        .try_for_each(|cpu| rings.update(&cpu.to_ne_bytes(), &ring, MapFlags::ANY))
}

fn attach(object: &Object) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        let name = program.name().to_string_lossy().into_owned();
        if name == kernel::PAGE_FAULTS {
            links.extend(object::attach_to_page_faults(&program)?);
        } else if kernel::FUNCTIONS.contains(&name.as_str()) {
            links.extend(program.attach());
        } else {
            links.push(program.attach()?);
        }
    }
    Ok(links)
}

/// Disables the programs that are of no use on this machine.
fn disable_useless(
    open: &mut OpenObject,
    btf: &Btf<'_>,
    (local_timer, cpus): (bool, usize),
    (sparse, later): (bool, bool),
) {
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let accounted = sparse && kernel::is_accounted(&name, btf);
        if accounted || !kernel::is_of_use(&name, local_timer, cpus, later) {
            program.set_autoload(false);
        }
    }
}

/// Disables the programs that this kernel has no use for, and returns the names of tracepoints that
/// other kernels of its architecture have.
fn disable_missing(open: &mut OpenObject, btf: &Btf<'_>, functions: bool) -> Vec<&'static str> {
    let mut missing = Vec::new();
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let is_there = if name == kernel::PAGE_FAULTS {
            kernel::needs_page_faults(btf)
        } else if kernel::FUNCTIONS.contains(&name.as_str()) {
            functions && kernel::needs_function(btf, &name)
        } else {
            kernel::has_tracepoint(btf, &name)
        };
        if !is_there {
            program.set_autoload(false);
            let known = kernel::TRACEPOINTS.iter().chain(kernel::OF_ARCHITECTURE);
            missing.extend(known.filter(|known| **known == name));
        }
    }
    missing
}

fn configure(
    open: &mut OpenObject,
    (watch, threshold, detail, later): (&Watch, Nanos, Detail, bool),
    (local_timer, cpus): (bool, usize),
    btf: &Btf<'_>,
) -> libbpf_rs::Result<()> {
    let (how, name) = match watch {
        Watch::Tasks(_) => (0, Comm::default()),
        Watch::Name(name) => (1, *name),
        Watch::RealTime => (2, Comm::default()),
    };
    let variables = kernel::variables(btf);
    let settings = Settings {
        name,
        slow: SLOW,
        variables,
        how,
        non_preemptible: kernel::is_non_preemptible(),
        local_timer,
        sparse: detail == Detail::Sparse,
        later,
        wakings: detail == Detail::Running,
    };
    for mut map in open.maps_mut() {
        match map.name().to_str() {
            Some(".rodata.settings") => map.set_initial_value(&settings.bytes())?,
            Some(".data.above") => map.set_initial_value(&threshold.0.to_ne_bytes())?,
            Some("windows") if settings.sparse => map.set_max_entries(SPARSE_ROOM)?,
            Some("rings") => {
                map.set_max_entries(u32::try_from(cpus).unwrap_or(u32::MAX))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns a reader that appends late windows to `received`.
fn reader(
    object: &Object,
    received: &Arc<Mutex<Received>>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let received = Arc::clone(received);
    let map = map(object, "windows")?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&map, move |bytes| {
        let mut received = lock(&received);
        // The threshold may have been raised since the program wrote the window.
        if duration(bytes).is_none_or(|duration| duration >= received.threshold) {
            match window(bytes) {
                Some(window) => received.windows.push(window),
                None => received.unreadable += 1,
            }
        }
        received.entries += 1;
        if received.entries < BATCH { 0 } else { STOP }
    })?;
    builder.build()
}
