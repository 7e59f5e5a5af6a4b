//! madvise(2): populating memory.

use super::anonymous::Anonymous;
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::io;

/// Populates mapped memory: the kernel allocates and clears all of its pages.
///
/// In the window: madvise(2) with MADV_POPULATE_WRITE, which Linux has since 5.14. A kernel that is
/// not fully preemptible clears a huge page of 2 MiB without a scheduling point.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Populate {
    #[command(flatten)]
    #[serde(flatten)]
    memory: Anonymous,
}

impl Describe for Populate {
    const ABOUT: About = About { name: "populate", summary: "populate mapped memory" };
}

impl Call for Populate {
    fn check(&self) -> Result<()> {
        self.memory.check(Self::ABOUT.name)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Populate {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let mut memory = self.memory.fresh()?;
        window.enter()?;
        let populated = memory.populate();
        window.leave();
        populated
    }
}
