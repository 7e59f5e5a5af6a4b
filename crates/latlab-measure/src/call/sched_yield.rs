//! `sched_yield(2)`: yielding the CPU.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::part::{About, Describe};
use std::io;

/// Yields the CPU while no other task of the same priority is runnable: about the shortest call
/// into the scheduler.
///
/// In the window: this call.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct SchedYield {}

impl Describe for SchedYield {
    const ABOUT: About =
        About { name: "sched_yield", summary: "yield the CPU to tasks of the same priority" };
}

impl Call for SchedYield {
    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for SchedYield {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        window.enter()?;
        std::thread::yield_now();
        window.leave();
        Ok(())
    }
}
