//! clone(2): creating a thread.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::part::{About, Describe};
use std::io;

/// Starts a thread that exits at once, and waits for it.
///
/// In the window: mmap(2) and mprotect(2) for its stack, clone(2), its exit, and futex(2) until
/// then, as the C library does it.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Thread {}

impl Describe for Thread {
    const ABOUT: About = About { name: "thread", summary: "start a thread that exits at once" };
}

impl Call for Thread {
    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Thread {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        window.enter()?;
        let ended = std::thread::Builder::new().spawn(|| {})?.join();
        window.leave();
        ended.map_err(|_| io::Error::other("the thread panicked"))
    }
}
