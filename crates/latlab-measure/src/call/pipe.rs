//! pipe(2): sending bytes through a pipe.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_core::size::Bytes;
use latlab_part::part::{About, Describe};
use latlab_sys::process;
use std::fs::File;
use std::io::{self, Read as _, Write as _};

/// Writes to a pipe, and reads all of it again.
///
/// In the window: one write(2) and one read(2).
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Pipe {
    /// Bytes to write, at most the capacity of the pipe
    #[arg(long, default_value = "64KiB", value_parser = size)]
    size: Bytes,
}

fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if (1..=65536).contains(&size.0) { Ok(size) } else { Err(format!("{text} is not 1B to 64KiB")) }
}

impl Describe for Pipe {
    const ABOUT: About = About { name: "pipe", summary: "write to a pipe and read all of it" };
}

impl Call for Pipe {
    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        let (from, to) = process::pipe()?;
        let buffer = vec![b'-'; usize::try_from(self.size.0).unwrap_or(1)];
        Ok(Box::new(PipeStage { from, to, buffer }))
    }
}

struct PipeStage {
    from: File,
    to: File,
    buffer: Vec<u8>,
}

impl Stage for PipeStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        window.enter()?;
        self.to.write_all(&self.buffer)?;
        self.from.read_exact(&mut self.buffer)?;
        window.leave();
        Ok(())
    }
}
