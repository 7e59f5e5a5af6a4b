//! mprotect(2): changing the protection of memory.

use super::anonymous::Anonymous;
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::io;

/// Makes memory that has been touched read-only: the kernel changes all of its page table entries,
/// and flushes the TLBs of all CPUs.
///
/// In the window: mprotect(2).
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Mprotect {
    #[command(flatten)]
    #[serde(flatten)]
    memory: Anonymous,
}

impl Describe for Mprotect {
    const ABOUT: About = About { name: "mprotect", summary: "make memory read-only" };
}

impl Call for Mprotect {
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
