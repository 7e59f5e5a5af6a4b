//! Anonymous memory that calls operate on: its size, and the size of its pages.

use latlab_core::size::Bytes;
use latlab_part::failure::{Failure, Result};
use latlab_sys::mapping::{Mapping, Pages};
use latlab_sys::memory;
use serde::{Deserialize, Serialize};
use std::io;

/// Anonymous memory, aligned so that all of it can consist of huge pages.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Anonymous {
    /// Size of the memory
    #[arg(long, default_value = "4MiB", value_parser = size)]
    size: Bytes,
    /// Huge pages of 2 MiB: as the machine is configured (default), wherever possible, or never
    #[arg(long, default_value = "default")]
    huge: Huge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Huge {
    Default,
    Always,
    Never,
}

fn size(text: &str) -> std::result::Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    let sane = (4096..=64 << 30).contains(&size.0);
    if sane { Ok(size) } else { Err(format!("{text} is not 4KiB to 64GiB")) }
}

impl Anonymous {
    /// Refuses more memory than is available.
    pub(super) fn check(&self, call: &str) -> Result<()> {
        match memory::available() {
            Some(free) if free < self.size => Err(Failure::failed(format!(
                "{call}: {} of memory are needed, {free} are available: choose a smaller size",
                self.size
            ))),
            _ => Ok(()),
        }
    }

    /// Memory that is mapped and not populated.
    pub(super) fn fresh(&self) -> io::Result<Mapping> {
        let mut memory = Mapping::aligned(self.size)?;
        match self.huge {
            Huge::Default => {}
            Huge::Always => memory.prefer(Pages::Huge),
            Huge::Never => memory.prefer(Pages::Small),
        }
        Ok(memory)
    }

    /// Memory that is populated.
    pub(super) fn touched(&self) -> io::Result<Mapping> {
        let mut memory = self.fresh()?;
        memory.touch();
        Ok(memory)
    }
}
