//! A scheduler under which ordinary tasks run until their slice ends: `sched_ext`, Linux 6.12 and
//! later, where it was built with `CONFIG_SCHED_CLASS_EXT`.

use crate::refusal::{RecorderError, check, refused};
use latlab_sys::root::Root;
use libbpf_rs::{Link, MapCore as _, ObjectBuilder};

/// The kernel's side, as `make bpf` compiles it.
const OBJECT: &[u8] = include_bytes!("slices.bpf.o");
/// Where the kernel says what schedules ordinary tasks.
const STATE: &str = "sys/kernel/sched_ext/state";
const NAME: &str = "sys/kernel/sched_ext/root/ops";

/// Ordinary tasks are scheduled by slices until this is dropped. Nothing outlives the process: the
/// kernel takes its own scheduler back when the last reference has gone, or when ours lets a task
/// wait for 5 s.
#[derive(Debug)]
pub struct Slices {
    _scheduler: Link,
}

impl Slices {
    /// Which scheduler of this kind is at work: its name, or "none"; nothing where the kernel has no
    /// `sched_ext`.
    pub fn at_work(root: &Root) -> Option<String> {
        let state = root.text(STATE)?;
        let name = root.text(NAME).filter(|_| state.trim() != "disabled");
        Some(name.map_or_else(|| "none".to_owned(), |name| name.trim().to_owned()))
    }

    /// Takes over. Refused where another scheduler of this kind is at work.
    pub fn start() -> Result<Slices, RecorderError> {
        check(&Root::default())?;
        let load = || {
            let mut object = ObjectBuilder::default().name("slices")?.open_memory(OBJECT)?.load()?;
            let scheduler = object.maps_mut().find(|map| map.name() == "slices");
            let mut scheduler = scheduler.ok_or_else(|| std::io::Error::other("no scheduler"))?;
            scheduler.attach_struct_ops()
        };
        load().map(|link| Slices { _scheduler: link }).map_err(|e| refused(&e, ""))
    }
}
