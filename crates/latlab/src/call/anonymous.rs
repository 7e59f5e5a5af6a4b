//! The memory that calls are made on: how much, and of which pages.

use crate::failure::{Failure, Result};
use latlab_core::size::Bytes;
use latlab_sys::mapping::{Mapping, Pages};
use latlab_sys::memory;
use serde::{Deserialize, Serialize};
use std::io;

/// Anonymous memory, aligned so that huge pages can be in all of it.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Anonymous {
    /// How much memory
    #[arg(long, default_value = "4MiB", value_parser = size)]
    size: Bytes,
    /// Pages of 2 MiB: where the machine has them by itself, wherever they can be, nowhere
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
    /// Refuses more than there is.
    pub(super) fn check(&self, call: &str) -> Result<()> {
        match memory::available() {
            Some(free) if free < self.size => Err(Failure::Failed(format!(
                "{call}: {} of memory are wanted, {free} are available: give a smaller size",
                self.size
            ))),
            _ => Ok(()),
        }
    }

    /// Memory that is promised and not there yet.
    pub(super) fn fresh(&self) -> io::Result<Mapping> {
        let mut memory = Mapping::aligned(self.size)?;
        match self.huge {
            Huge::Default => {}
            Huge::Always => memory.prefer(Pages::Huge),
            Huge::Never => memory.prefer(Pages::Small),
        }
        Ok(memory)
    }

    /// Memory that is there.
    pub(super) fn touched(&self) -> io::Result<Mapping> {
        let mut memory = self.fresh()?;
        memory.touch();
        Ok(memory)
    }
}
