//! A compiled object in the kernel: how it gets there, its maps, and what its programs cost.

use crate::refusal::{RecorderError, refused};
use latlab_core::time::Nanos;
use latlab_sys::bpf;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, PrintLevel};
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a program cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    /// Its name, which is that of the tracepoint.
    pub name: String,
    /// How often it ran while runs were counted.
    pub runs: u64,
    /// How long that took.
    pub time: Nanos,
    /// How many instructions the verifier followed; 0 before Linux 5.16.
    pub verified: u32,
    /// The bytes of machine code that it became; 0 where it is interpreted.
    pub machine_code: u32,
}

/// The key of a map that is one value.
pub(crate) const ZERO: [u8; 4] = [0; 4];
/// What libbpf said since an object was last loaded. It has one voice for the whole process.
static SAID: Mutex<String> = Mutex::new(String::new());

/// What `load` loads; or why the kernel refuses it, from what libbpf says meanwhile.
pub(crate) fn loaded<T>(load: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, RecorderError> {
    lock(&SAID).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| lock(&SAID).push_str(&text))));
    load().map_err(|error| refused(&error, &lock(&SAID)))
}

/// The map of that name.
pub(crate) fn map(object: &Object, name: &str) -> libbpf_rs::Result<MapHandle> {
    let found = object.maps().find(|map| map.name() == OsStr::new(name));
    found.map_or_else(
        || Err(io::Error::other(format!("the object has no map '{name}'")).into()),
        |map| MapHandle::try_from(&map),
    )
}

/// The eight bytes at `at` in a map that is one value.
pub(crate) fn number(map: &MapHandle, at: usize) -> u64 {
    let value = map.lookup(&ZERO, MapFlags::ANY).ok().flatten().unwrap_or_default();
    value.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The programs, by name, and what the kernel knows of each.
pub(crate) fn programs(object: &Object) -> impl Iterator<Item = (String, bpf::Program)> {
    object.progs().filter_map(|program| {
        let name = program.name().to_string_lossy().into_owned();
        Some((name, bpf::program(program.as_fd()).ok()?))
    })
}

/// What every program cost while runs were counted.
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

/// Locks it, whatever became of who last had it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
