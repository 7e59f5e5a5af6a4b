//! mremap(2): moving memory to other addresses.

use super::anonymous::Anonymous;
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::io;

/// Moves memory that has been touched to other addresses: the kernel moves all of its page table
/// entries.
///
/// In the window: mremap(2) to addresses that were reserved before.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Mremap {
    #[command(flatten)]
    #[serde(flatten)]
    memory: Anonymous,
}

impl Describe for Mremap {
    const ABOUT: About = About { name: "mremap", summary: "move memory to other addresses" };
}

impl Call for Mremap {
    fn check(&self) -> Result<()> {
        self.memory.check(Self::ABOUT.name)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Mremap {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let mut memory = self.memory.touched()?;
        let target = self.memory.fresh()?;
        window.enter()?;
        let moved = memory.move_to(target);
        window.leave();
        moved
    }
}
