//! Calls: system calls that can be scanned for non-preemptible sections.

mod driver;
mod exec;
mod exit;
mod fork;
mod futex;
mod mprotect;
mod mremap;
mod munmap;
mod open_close;
mod pipe;
mod populate;
mod procfs;
mod program;
mod read;
mod sched_yield;
mod socket;
mod stat;
mod sync;
mod thread;
mod truncate;
mod write;

mod anonymous;
mod store;
pub mod window;

use self::window::Window;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::needs::Needs;
use latlab_part::part::{self, Describe, Entry, Params};
use serde_json::Value;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::Path;

/// Every call, in the order `latlab list calls` shows them.
pub static CALLS: &[Entry<dyn Call>] = &[
    entry::<munmap::Munmap>(),
    entry::<populate::Populate>(),
    entry::<mprotect::Mprotect>(),
    entry::<mremap::Mremap>(),
    entry::<fork::Fork>(),
    entry::<exec::Exec>(),
    entry::<exit::Exit>(),
    entry::<thread::Thread>(),
    entry::<read::Read>(),
    entry::<write::Write>(),
    entry::<truncate::Truncate>(),
    entry::<sync::Sync>(),
    entry::<open_close::OpenClose>(),
    entry::<stat::Stat>(),
    entry::<procfs::Procfs>(),
    entry::<pipe::Pipe>(),
    entry::<socket::Socket>(),
    entry::<futex::Futex>(),
    entry::<sched_yield::SchedYield>(),
    entry::<driver::Looping>(),
    entry::<program::Program>(),
];

/// Fails where `path` can't be opened as a file; `opened` names what the call does with it.
fn check_file(call: &str, path: &Path, opened: &str) -> Result<()> {
    let cannot = |why: &dyn std::fmt::Display| {
        let path = path.display();
        Failure::failed(format!(
            "{call}: {path} can't be {opened} ({why}): name another with path="
        ))
    };
    // Opening a named pipe would wait for a writer, and opening a device may do anything.
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(cannot(&"it is not a file"));
    }
    File::open(path).map(drop).map_err(|e| cannot(&e))
}

/// A system call to scan.
pub trait Call: Debug + Send + Sync {
    /// Whether the call is made by the test driver.
    fn needs_driver(&self) -> bool {
        false
    }

    /// The folder that it writes to, if that must lie on a disk.
    fn folder(&self) -> Option<&Path> {
        None
    }

    /// The command that starts a program of the machine, if it does.
    fn command(&self) -> Option<Vec<String>> {
        None
    }

    /// Real-time priority of the process that makes the call: above ordinary tasks, below the task
    /// that the interrupt wakes.
    fn priority(&self) -> u32 {
        window::CONSUMER_PRIORITY
    }

    /// Refuses what can't work here, before anything is started.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Prepares what is needed once, before the first window.
    fn stage(&self) -> io::Result<Box<dyn Stage>>;
}

impl dyn Call {
    /// Needs of the call beyond a kernel.
    pub fn needs(&self) -> Needs {
        let folders = self.folder().map(Path::to_owned).into_iter().collect();
        let (driver, commands) = (self.needs_driver(), self.command().into_iter().collect());
        Needs { driver, folders, commands, ..Needs::default() }
    }
}

/// A prepared call, ready to be made repeatedly.
pub trait Stage {
    /// Makes the call once. Only the call is between [`Window::enter`] and [`Window::leave`];
    /// preparation and clean-up are outside.
    fn play(&mut self, window: &Window) -> io::Result<()>;
}

const fn entry<C: Call + Describe + Params>() -> Entry<dyn Call> {
    Entry {
        about: C::ABOUT,
        keys: part::keys::<C>,
        read: part::read::<C>,
        build: |params| Ok(Box::new(serde_json::from_value::<C>(Value::Object(params))?)),
    }
}
