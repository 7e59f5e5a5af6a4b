//! Compiled BPF objects: loading, maps, and the cost of their programs.

use crate::refusal::{RecorderError, explain};
use latlab_core::time::Nanos;
use latlab_sys::root::Root;
use latlab_sys::{bpf, cpu, perf};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, Object, PrintLevel, ProgramMut};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, IntoRawFd as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Cost of a BPF program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    /// Name of the program: the name of its tracepoint.
    pub name: String,
    /// Number of runs while runs were counted.
    pub runs: u64,
    /// Total time of these runs.
    pub time: Nanos,
    /// Number of instructions the verifier processed; 0 before Linux 5.16.
    pub verified: u32,
    /// Size of the JIT-compiled machine code in bytes; 0 if the program is interpreted.
    pub machine_code: u32,
}

/// Key of a map with a single value.
pub(crate) const ZERO: [u8; 4] = [0; 4];
/// Messages of libbpf since an object was last loaded. libbpf has one logger per process.
static LIBBPF_LOG: Mutex<String> = Mutex::new(String::new());

/// Calls `load`. If it fails, the error is explained by the messages of libbpf.
pub(crate) fn load_explained<T>(
    load: impl FnOnce() -> libbpf_rs::Result<T>,
) -> Result<T, RecorderError> {
    lock(&LIBBPF_LOG).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| lock(&LIBBPF_LOG).push_str(&text))));
    load().map_err(|error| explain(&error, &lock(&LIBBPF_LOG)))
}

/// Returns the map of that name.
pub(crate) fn map(object: &Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    let found = object.maps().find(|map| map.name() == OsStr::new(name));
    found.map_or_else(
        || Err(io::Error::other(format!("the object has no map '{name}'")).into()),
        |map| MapHandle::try_from(&map),
    )
}

/// Attaches a program to the software event of page faults, of each CPU.
pub(crate) fn attach_to_page_faults(program: &ProgramMut<'_>) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    for cpu in cpu::online(&Root::default()).iter() {
        let event = perf::page_faults(cpu)?;
        links.push(program.attach_perf_event(event.into_raw_fd())?);
    }
    Ok(links)
}

/// Reads the 64-bit number at the offset `at` of a map with a single value.
pub(crate) fn read_u64(map: &MapHandle, at: usize) -> u64 {
    let value = map.lookup(&ZERO, MapFlags::ANY).ok().flatten().unwrap_or_default();
    value.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The programs with their names, as the kernel reports them.
pub(crate) fn programs(object: &Object) -> impl Iterator<Item = (String, bpf::Program)> {
    object.progs().filter_map(|program| {
        let name = program.name().to_string_lossy().into_owned();
        Some((name, bpf::program(program.as_fd()).ok()?))
    })
}

/// Number of events that came while the CPU ran the program of these names for another one.
pub(crate) fn missed(object: &Object, is_meant: impl Fn(&str) -> bool) -> u64 {
    programs(object).filter(|(name, _)| is_meant(name)).map(|(_, program)| program.missed).sum()
}

/// Cost of each program while runs were counted.
pub(crate) fn cost(object: &Object) -> Vec<ProgramCost> {
    let cost = programs(object).map(|(name, program)| ProgramCost {
        name,
        runs: program.runs,
        time: program.time,
        verified: program.verified,
        machine_code: program.machine_code,
    });
    cost.collect()
}

/// Locks the mutex, also after a panic of a thread that held it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
