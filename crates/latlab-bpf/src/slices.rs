//! A scheduler under which ordinary tasks run until their slice ends: `sched_ext`, Linux 6.12 and
//! later, where the kernel was built with `CONFIG_SCHED_CLASS_EXT`.

use crate::object::loaded;
use crate::refusal::{RecorderError, check};
use latlab_sys::root::Root;
use libbpf_rs::{Link, MapCore as _, ObjectBuilder};
use std::io;

/// The kernel's side, as `make bpf` compiles it.
const OBJECT: &[u8] = include_bytes!("slices.bpf.o");

/// Ordinary tasks are scheduled by slices until this is dropped. Nothing outlives the process: the
/// kernel takes its own scheduler again when the last reference to ours has gone, and when ours has
/// let a task wait for 5 s.
#[derive(Debug)]
pub struct Slices {
    _scheduler: Link,
}

impl Slices {
    /// Takes over; `/sys/kernel/sched_ext/root/ops` says `latlab_slices` then. Refused where another scheduler of this kind is at work.
    pub fn start() -> Result<Slices, RecorderError> {
        check(&Root::default())?;
        loaded(load).map(|link| Slices { _scheduler: link })
    }
}

fn load() -> libbpf_rs::Result<Link> {
    let mut object = ObjectBuilder::default().name("slices")?.open_memory(OBJECT)?.load()?;
    let mut slices = object.maps_mut().filter(|map| map.name() == "slices");
    let mut scheduler =
        slices.next().ok_or_else(|| io::Error::other("the object has no scheduler"))?;
    scheduler.attach_struct_ops()
}
