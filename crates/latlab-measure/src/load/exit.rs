//! Exit load: large processes end, and the kernel frees all of their memory.

use super::{Load, LoadContext, Place, space};
use latlab_core::size::Bytes;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::mapping::Mapping;
use std::io;

/// Forks a child that touches much memory and exits, and waits for it, repeatedly, one worker on
/// each CPU.
///
/// The exit of a large process, in addition to the fork and memory loads of Abeni et al. 2002: the
/// kernel walks all of its page tables and frees each page. Counts processes.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exit {
    /// Memory of each child when it exits
    #[arg(long, default_value = "64MiB", value_parser = space::page_aligned_size)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Exit {
    const ABOUT: About = About { name: "exit", summary: "exit of processes with much memory" };
}

impl Load for Exit {
    fn unit(&self) -> &'static str {
        "processes"
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
            let grow_and_end = || {
                match Mapping::new(self.size) {
                    Ok(mut memory) => {
                        memory.touch();
                        // The memory is freed by the exit of the process, not before.
                        std::mem::forget(memory);
                    }
                    // Without a message: the parent gets the exit status.
                    Err(e) => std::panic::resume_unwind(Box::new(e)),
                }
            };
            context.single().fork(grow_and_end)?.wait()?;
            context.done(1);
        }
        Ok(())
    }
}
