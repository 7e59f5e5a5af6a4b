//! Loads: work that competes with a probe, each in processes of its own that die with latlab.

mod caps_lock;
mod console;
mod console_switch;
mod cpu;
mod disk;
mod download;
mod exec;
mod exit;
mod fork;
mod hackbench;
mod interrupts;
mod io;
mod ipi;
mod memory;
mod netbench;
mod network;
mod page_cache;
mod ping;
mod procfs;
mod realfeel;
mod space;
mod wilshire_disk;

mod context;
mod place;
mod workers;

pub use context::{LoadContext, serve};
pub use place::{Place, Placed};
pub use workers::Loads;

use latlab_part::failure::Result;
use latlab_part::part::needs::Needs;
use latlab_part::part::{self, Describe, Entry, Params};
use serde_json::Value;
use std::fmt::Debug;

/// Every load, in the order `latlab list loads` shows them.
pub static LOADS: &[Entry<dyn Load>] = &[
    entry::<cpu::Cpu>(),
    entry::<memory::Memory>(),
    entry::<disk::Disk>(),
    entry::<fork::Fork>(),
    entry::<procfs::Procfs>(),
    entry::<hackbench::Hackbench>(),
    entry::<netbench::Netbench>(),
    entry::<realfeel::Realfeel>(),
    entry::<caps_lock::CapsLock>(),
    entry::<console_switch::ConsoleSwitch>(),
    entry::<io::Io>(),
    entry::<wilshire_disk::WilshireDisk>(),
    entry::<page_cache::PageCache>(),
    entry::<ping::Ping>(),
    entry::<download::Download>(),
    entry::<exec::Exec>(),
    entry::<exit::Exit>(),
    entry::<interrupts::Interrupts>(),
    entry::<ipi::Ipi>(),
];

/// A load: work that competes with the probe.
pub trait Load: Debug + Send + Sync {
    /// The unit in which its work is counted.
    fn unit(&self) -> &'static str;

    /// Whether one worker serves the whole machine, with children of its own; otherwise each CPU
    /// gets a worker.
    fn one_worker(&self) -> bool {
        false
    }

    /// The number of CPUs below which it has no effect.
    fn least_cpus(&self) -> usize {
        1
    }

    /// The knobs that it changes while it works; the guard restores them.
    fn changes(&self) -> &'static [&'static str] {
        &[]
    }

    /// The CPUs it runs on.
    fn place(&self) -> &Place;

    /// Its needs beyond a kernel.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Refuses what can't work here with this many workers, before anything is started.
    fn check(&self, _workers: u64) -> Result<()> {
        Ok(())
    }

    /// Works until it is told to stop. This runs in a process of its own.
    fn work(&self, context: &LoadContext) -> std::io::Result<()>;
}

const fn entry<L: Load + Describe + Params>() -> Entry<dyn Load> {
    Entry {
        about: L::ABOUT,
        keys: part::keys::<L>,
        read: part::read::<L>,
        build: |params| Ok(Box::new(serde_json::from_value::<L>(Value::Object(params))?)),
    }
}
