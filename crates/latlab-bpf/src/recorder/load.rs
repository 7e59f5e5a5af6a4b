//! How a recording is begun: what this kernel has is loaded, told whom to watch, and attached.

use super::{BATCH, Came, Recorder, Watch};
use crate::counting::Counting;
use crate::kernel;
use crate::layout::{Settings, took, window};
use crate::object::{lock, map};
use latlab_core::explain::Comm;
use latlab_core::time::Nanos;
use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, Object, ObjectBuilder, OpenObject, RingBuffer, RingBufferBuilder};
use std::sync::{Arc, Mutex};

/// The kernel's side, as `make bpf` compiles it.
const OBJECT: &[u8] = include_bytes!("../recorder.bpf.o");
/// What is later than this is worth a stack, which takes about a microsecond.
const SLOW: Nanos = Nanos::from_micros(5);

/// Makes libbpf hand over no more for now.
const ENOUGH: i32 = -1;

/// Starts a recorder. What fails is the kernel's or libbpf's own.
pub(super) fn load(watch: &Watch, above: Nanos) -> libbpf_rs::Result<Recorder> {
    let mut open = ObjectBuilder::default().name("recorder")?.open_memory(OBJECT)?;
    let btf = Btf::from_vmlinux()?;
    let missing = leave_out(&mut open, &btf);
    configure(&mut open, watch, above, &btf)?;
    let object = open.load()?;
    let came = Arc::new(Mutex::new(Came { above, ..Came::default() }));
    let mut recorder = Recorder {
        windows: reader(&object, &came)?,
        came,
        above: map(&object, ".data.above")?,
        filter: map(&object, ".bss.filter")?,
        tasks: map(&object, "tasks")?,
        lost: map(&object, ".bss.lost")?,
        turned_away: 0,
        missing,
        counting: Counting::begin(),
        links: Vec::new(),
        object,
    };
    if let Watch::Tasks(pids) = watch {
        pids.iter().try_for_each(|pid| recorder.watch(*pid)).map_err(libbpf_rs::Error::from)?;
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
        // One that was late when it was handed over need not be any more: its events need not be read.
        if took(bytes).is_none_or(|took| took >= came.above) {
            match window(bytes) {
                Some(window) => came.windows.push(window),
                None => came.unreadable += 1,
            }
        }
        came.taken += 1;
        if came.taken < BATCH { 0 } else { ENOUGH }
    })?;
    builder.build()
}
