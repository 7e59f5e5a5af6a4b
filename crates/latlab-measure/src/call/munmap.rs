//! munmap(2): unmapping memory.

use super::anonymous::Anonymous;
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::io;

/// Unmaps memory that has been touched: the kernel frees all of its pages.
///
/// In the window: munmap(2).
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Munmap {
    #[command(flatten)]
    #[serde(flatten)]
    memory: Anonymous,
}

impl Describe for Munmap {
    const ABOUT: About = About { name: "munmap", summary: "unmap memory that has been touched" };
}

impl Call for Munmap {
    fn check(&self) -> Result<()> {
        self.memory.check(Self::ABOUT.name)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Munmap {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let memory = self.memory.touched()?;
        window.enter()?;
        drop(memory);
        window.leave();
        Ok(())
    }
}
