//! The end of large processes: all of their memory is given back at once.

use super::{Bench, Load, Place, room};
use crate::failure::Result;
use crate::registry::About;
use latlab_core::size::Bytes;
use latlab_sys::mapping::Mapping;
use std::io;

/// Forks a child that touches much memory and ends, and waits for it, again and again, one worker on
/// each CPU.
///
/// The end of a large process, beside the fork and memory loads of Abeni et al. 2002: the kernel
/// walks all of its page tables and frees each page. Its work is counted in processes.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exit {
    /// Memory that each child has when it ends
    #[arg(long, default_value = "64MiB", value_parser = room::pages)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Load for Exit {
    const ABOUT: About = About { name: "exit", summary: "end processes that have much memory" };
    const UNIT: &'static str = "processes";

    fn place(&self) -> &Place {
        &self.place
    }

    fn check(&self, workers: u64) -> Result<()> {
        room::in_memory(Self::ABOUT.name, Bytes(self.size.0.saturating_mul(workers)))
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        bench.ready();
        while bench.running() {
            let grow_and_end = || {
                match Mapping::new(self.size) {
                    Ok(mut memory) => {
                        memory.touch();
                        // It is the end of the process that gives the memory back.
                        std::mem::forget(memory);
                    }
                    // Without a word: the parent hears that it failed.
                    Err(e) => std::panic::resume_unwind(Box::new(e)),
                }
            };
            bench.single().fork(grow_and_end)?.wait()?;
            bench.done(1);
        }
        Ok(())
    }
}
