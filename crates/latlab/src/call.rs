//! Calls: what can be scanned for stretches in which the kernel can't be preempted.

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

use crate::failure::{Failure, Result};
use crate::needs::Needs;
use crate::registry::{self, About, Entry, Params};
use crate::window::{self, Window};
use latlab_core::plan::Part;
use serde_json::Value;
use std::fs::File;
use std::io;
use std::path::Path;

/// Every call, in the order `latlab list calls` shows them.
pub(crate) static CALLS: &[Entry<dyn AnyCall>] = &[
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

/// What a call needs.
pub(crate) fn needs(call: &Part) -> Result<Needs> {
    let call = registry::build("call", CALLS, call)?;
    let folders = call.folder().map(Path::to_owned).into_iter().collect();
    Ok(Needs { driver: call.needs_driver(), folders, ..Needs::default() })
}

/// Refuses a path of `call` that can't be opened as a file; `opened` says what is done with it.
fn check_file(call: &str, path: &Path, opened: &str) -> Result<()> {
    let cannot = |why: &dyn std::fmt::Display| {
        let path = path.display();
        Failure::Failed(format!(
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
pub(crate) trait Call: Params {
    const ABOUT: About;

    /// Whether it is made of the test driver.
    const NEEDS_DRIVER: bool = false;

    /// The folder that it writes to, where that has to be on a disk.
    fn folder(&self) -> Option<&Path> {
        None
    }

    /// The priority of the process that makes it, between those of ordinary tasks and of the
    /// task that the interrupt wakes.
    fn priority(&self) -> u32 {
        window::CONSUMER
    }

    /// Refuses what can't work here, before anything starts.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// What is made once, before the first window.
    fn stage(&self) -> io::Result<Box<dyn Stage>>;
}

/// All that a call needs, ready to be made again and again.
pub(crate) trait Stage {
    /// Makes the call once. Between [`Window::enter`] and [`Window::leave`] stands the call and
    /// nothing else; what prepares and clears away stands before and after.
    fn play(&mut self, window: &Window) -> io::Result<()>;
}

/// A [`Call`] whose type has been erased, as the table holds it.
pub(crate) trait AnyCall: Send + Sync {
    fn needs_driver(&self) -> bool;
    fn folder(&self) -> Option<&Path>;
    fn priority(&self) -> u32;
    fn check(&self) -> Result<()>;
    fn stage(&self) -> io::Result<Box<dyn Stage>>;
}

impl<C: Call> AnyCall for C {
    fn needs_driver(&self) -> bool {
        C::NEEDS_DRIVER
    }
    fn folder(&self) -> Option<&Path> {
        Call::folder(self)
    }
    fn priority(&self) -> u32 {
        Call::priority(self)
    }
    fn check(&self) -> Result<()> {
        Call::check(self)
    }
    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Call::stage(self)
    }
}

const fn entry<C: Call>() -> Entry<dyn AnyCall> {
    Entry {
        about: C::ABOUT,
        keys: registry::keys::<C>,
        read: registry::read::<C>,
        build: |params| Ok(Box::new(serde_json::from_value::<C>(Value::Object(params))?)),
    }
}
