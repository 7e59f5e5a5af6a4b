//! mprotect(2): changing what memory may be used for.

use super::anonymous::Anonymous;
use super::{Call, Stage};
use crate::failure::Result;
use crate::registry::About;
use crate::window::Window;
use std::io;

/// Forbids writing to memory that has been touched: the kernel changes entry after entry of the
/// page tables, and has all CPUs forget the old ones.
///
/// In the window: mprotect(2).
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Mprotect {
    #[command(flatten)]
    #[serde(flatten)]
    memory: Anonymous,
}

impl Call for Mprotect {
    const ABOUT: About = About { name: "mprotect", summary: "forbid writing to memory" };

    fn check(&self) -> Result<()> {
        self.memory.check(Self::ABOUT.name)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Mprotect {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let memory = self.memory.touched()?;
        window.enter()?;
        let sealed = memory.seal();
        window.leave();
        sealed.map(drop)
    }
}
