//! The file that calls read and write: in memory or on a disk, and its size.

use latlab_core::size::Bytes;
use latlab_part::failure::{Failure, Result};
use latlab_sys::{file, memory};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// An unnamed file, which vanishes with the process, even after a kill.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Store {
    /// Storage of the file: in memory, or on a disk in the folder dir=
    #[arg(long, default_value = "tmpfs")]
    place: Medium,
    /// Size of the file
    #[arg(long, default_value = "1MiB", value_parser = size)]
    size: Bytes,
    /// Folder on a disk, for place=disk
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Medium {
    Tmpfs,
    Disk,
}

/// Reads the size of a file: 1 B to 1 GiB.
pub(super) fn size(text: &str) -> std::result::Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    let sane = (1..=1 << 30).contains(&size.0);
    if sane { Ok(size) } else { Err(format!("{text} is not 1B to 1GiB")) }
}

impl Store {
    /// The folder of the file, if it is on a disk.
    pub(super) fn folder(&self) -> Option<&Path> {
        (self.place == Medium::Disk).then_some(&self.dir)
    }

    /// Refuses a file for which there is too little memory or disk space.
    pub(super) fn check(&self, call: &str) -> Result<()> {
        // A buffer in addition to the file in memory.
        let wanted = Bytes(self.size.0 * 2);
        match memory::available() {
            Some(free) if free < wanted => {
                return Err(Failure::failed(format!(
                    "{call}: {wanted} of memory are needed, {free} are available: choose a \
                     smaller size"
                )));
            }
            _ => {}
        }
        self.folder().map_or(Ok(()), |dir| check_folder(call, dir, self.size))
    }

    /// An empty file.
    pub(super) fn empty(&self) -> io::Result<File> {
        self.folder().map_or_else(file::in_memory, file::scratch)
    }

    /// The content of a full file.
    pub(super) fn content(&self) -> Vec<u8> {
        vec![b'-'; usize::try_from(self.size.0).unwrap_or(1)]
    }

    /// A full file, at its beginning.
    pub(super) fn full(&self) -> io::Result<File> {
        let mut file = self.empty()?;
        file.write_all(&self.content())?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}

/// Refuses a folder that can't be written to or has too little space.
pub(super) fn check_folder(call: &str, dir: &Path, size: Bytes) -> Result<()> {
    let cannot = |e: io::Error| {
        let dir = dir.display();
        Failure::failed(format!(
            "{call}: {dir} can't be written to ({e}): choose another with dir="
        ))
    };
    file::scratch(dir).map_err(cannot)?.write_all(&[0]).map_err(cannot)?;
    let free = Bytes(file::free_space(dir).map_err(cannot)?);
    if free < size {
        let dir = dir.display();
        return Err(Failure::failed(format!(
            "{call}: {dir} has {free} free, {size} are needed: choose another with dir=, or a \
             smaller size="
        )));
    }
    Ok(())
}
