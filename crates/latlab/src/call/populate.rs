//! madvise(2): having memory put behind addresses at once.

use super::anonymous::Anonymous;
use super::{Call, Stage};
use crate::failure::Result;
use crate::registry::About;
use crate::window::Window;
use std::io;

/// Has the kernel put memory behind fresh addresses: it finds page after page and clears it.
///
/// In the window: madvise(2) with MADV_POPULATE_WRITE, which Linux has since 5.14. A kernel that
/// can't be preempted everywhere clears a huge page of 2 MiB at a stretch.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Populate {
    #[command(flatten)]
    #[serde(flatten)]
    memory: Anonymous,
}

impl Call for Populate {
    const ABOUT: About = About { name: "populate", summary: "put memory behind fresh addresses" };

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
