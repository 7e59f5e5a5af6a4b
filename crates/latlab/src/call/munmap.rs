//! munmap(2): giving memory back.

use super::{Call, Stage};
use crate::registry::About;
use crate::window::Window;
use latlab_core::size::Bytes;
use latlab_sys::memory::Mapping;
use std::io;

/// Unmaps memory that has been touched: the kernel frees page after page.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Munmap {
    /// How much memory
    #[arg(long, default_value = "4MiB")]
    size: Bytes,
}

impl Call for Munmap {
    const ABOUT: About = About { name: "munmap", summary: "unmap memory that has been touched" };

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Munmap {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let mut memory = Mapping::new(self.size)?;
        memory.touch();
        window.enter()?;
        drop(memory);
        window.leave();
        Ok(())
    }
}
