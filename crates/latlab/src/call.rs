//! Calls: what can be scanned for stretches in which the kernel can't be preempted.

mod fork;
mod munmap;

use crate::failure::Result;
use crate::registry::{self, About, Entry, Params};
use crate::window::Window;
use serde_json::Value;
use std::io;

/// Every call, in the order `latlab list calls` shows them.
pub(crate) static CALLS: &[Entry<dyn AnyCall>] =
    &[entry::<munmap::Munmap>(), entry::<fork::Fork>()];

/// A system call to scan.
pub(crate) trait Call: Params {
    const ABOUT: About;

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
    fn check(&self) -> Result<()>;
    fn stage(&self) -> io::Result<Box<dyn Stage>>;
}

impl<C: Call> AnyCall for C {
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
