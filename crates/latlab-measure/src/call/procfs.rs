//! procfs: reading a file that the kernel generates.

use super::store::size;
use super::{Call, Stage, check_file};
use crate::call::window::Window;
use latlab_core::size::Bytes;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

/// Reads a file of /proc from its beginning: long loops in the kernel on behalf of a reader.
///
/// In the window: open(2), read(2) of 64 KiB at a time up to the end of the file or size=, and
/// close(2).
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Procfs {
    /// Path of the file
    #[arg(long, default_value = "/proc/kallsyms")]
    path: PathBuf,
    /// Most bytes to read
    #[arg(long, default_value = "256KiB", value_parser = size)]
    size: Bytes,
}

/// Bytes per read.
const CHUNK: usize = 64 * 1024;

impl Describe for Procfs {
    const ABOUT: About = About { name: "procfs", summary: "read a file of /proc" };
}

impl Call for Procfs {
    fn check(&self) -> Result<()> {
        check_file(Self::ABOUT.name, &self.path, "read")
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(ProcfsStage { call: self.clone(), buffer: vec![0; CHUNK] }))
    }
}

struct ProcfsStage {
    call: Procfs,
    buffer: Vec<u8>,
}

impl ProcfsStage {
    fn read(&mut self) -> io::Result<()> {
        let mut file = File::open(&self.call.path)?;
        let mut left = usize::try_from(self.call.size.0).unwrap_or(CHUNK);
        while left > 0 {
            let read = file.read(&mut self.buffer[..left.min(CHUNK)])?;
            if read == 0 {
                break;
            }
            left -= read;
        }
        Ok(())
    }
}

impl Stage for ProcfsStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        window.enter()?;
        let read = self.read();
        window.leave();
        read
    }
}
