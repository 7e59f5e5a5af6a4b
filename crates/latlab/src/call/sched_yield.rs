//! `sched_yield(2)`: letting others go first.

use super::{Call, Stage};
use crate::registry::About;
use crate::window::Window;
use std::io;

/// Lets others of the same priority go first, of whom there are none: about the shortest call that
/// schedules.
///
/// In the window: this call.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct SchedYield {}

impl Call for SchedYield {
    const ABOUT: About =
        About { name: "sched_yield", summary: "let others of the same priority go first" };

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
