//! Memory load: pages are mapped, touched and unmapped.

use super::{Load, LoadContext, Place, space};
use latlab_core::size::Bytes;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::mapping::Mapping;
use std::io;

/// Maps memory, touches each page once, and unmaps it, one worker on each CPU.
///
/// The memory load of Abeni et al. 2002 (section 5.2): page faults, zeroing of pages, and the
/// unmapping of large regions. Counts pages.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Memory {
    /// Memory that each worker maps at a time
    #[arg(long, default_value = "64MiB", value_parser = space::buffer_size)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Memory {
    const ABOUT: About = About { name: "memory", summary: "page faults: map, touch, unmap" };
}

impl Load for Memory {
    fn unit(&self) -> &'static str {
        "pages"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, workers: u64) -> Result<()> {
        space::check_memory(Self::ABOUT.name, Bytes(self.size.0.saturating_mul(workers)))
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        context.ready();
        while context.running() {
            context.done(Mapping::new(self.size)?.touch());
        }
        Ok(())
    }
}
