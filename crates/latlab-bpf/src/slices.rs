//! A `sched_ext` scheduler under which `SCHED_OTHER` tasks run until their slice ends. It needs
//! Linux 6.12 or later, built with `CONFIG_SCHED_CLASS_EXT`.

use crate::object::load_explained;
use crate::refusal::{RecorderError, check};
use latlab_sys::root::Root;
use libbpf_rs::{Link, MapCore as _, ObjectBuilder};
use std::io;

/// The BPF object, compiled by `make bpf`.
const OBJECT: &[u8] = include_bytes!("slices.bpf.o");

/// The loaded scheduler. `SCHED_OTHER` tasks are scheduled by it until this is dropped. The kernel
/// returns to its own scheduler when the last reference to this one is closed, also when the
/// process is killed, and when this one has let a task wait for 5 s.
#[derive(Debug)]
pub struct Slices {
    _scheduler: Link,
}

impl Slices {
    /// Loads the scheduler; `/sys/kernel/sched_ext/root/ops` is `latlab_slices` from then on. Fails
    /// if another `sched_ext` scheduler is loaded.
    pub fn start() -> Result<Slices, RecorderError> {
        check(&Root::default())?;
        load_explained(load).map(|link| Slices { _scheduler: link })
    }
}

fn load() -> libbpf_rs::Result<Link> {
    let mut object = ObjectBuilder::default().name("slices")?.open_memory(OBJECT)?.load()?;
    let mut slices = object.maps_mut().filter(|map| map.name() == "slices");
    let mut scheduler =
        slices.next().ok_or_else(|| io::Error::other("the object has no scheduler"))?;
    scheduler.attach_struct_ops()
}
