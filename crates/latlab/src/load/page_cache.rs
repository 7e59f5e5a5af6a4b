//! Write-back: pages of a file are made dirty faster than they are written.

use super::{Bench, Load, Place, room};
use crate::failure::Result;
use crate::needs::Needs;
use crate::registry::About;
use latlab_core::size::Bytes;
use latlab_sys::file;
use latlab_sys::mapping::Mapping;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Makes all pages of a file dirty, by writing and through a mapping in turns, and each time has
/// the kernel begin to write them back (`sync_file_range`), one worker on each CPU.
///
/// What databases and mapped logs do to a machine: page faults that wait for pages which are being
/// written, and the kernel's write-back threads. The file has no name: whatever ends latlab, nothing
/// is left of it. Its work is counted in pages made dirty.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct PageCache {
    /// Folder on the file system to write to
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Size of each worker's file
    #[arg(long, default_value = "32MiB", value_parser = room::pages)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

const PAGE: u64 = 4096;

impl Load for PageCache {
    const ABOUT: About =
        About { name: "page-cache", summary: "dirty pages of a file, and their write-back" };
    const UNIT: &'static str = "pages";

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        Needs::folder(&self.dir)
    }

    fn check(&self, workers: u64) -> Result<()> {
        let wanted = Bytes(self.size.0.saturating_mul(workers));
        room::in_memory(Self::ABOUT.name, wanted)?;
        room::in_folder(Self::ABOUT.name, &self.dir, wanted)
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let chunk = room::chunk(bench.seed);
        let file = file::scratch(&self.dir)?;
        bench.ready();
        while bench.running() {
            let mut offset = 0;
            while offset < self.size.0 && bench.running() {
                let left = usize::try_from(self.size.0 - offset).unwrap_or(room::CHUNK);
                let length = chunk.len().min(left);
                file.write_all_at(&chunk[..length], offset)?;
                offset += length as u64;
                bench.done(length as u64 / PAGE);
            }
            if !bench.running() {
                break;
            }
            file::write_back(&file)?;
            bench.done(Mapping::of_file(&file, Bytes(offset))?.touch());
            file::write_back(&file)?;
        }
        Ok(())
    }
}
