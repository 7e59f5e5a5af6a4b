//! Write-back load: pages of a file are dirtied faster than they are written.

use super::{Load, LoadContext, Place, space};
use latlab_core::size::Bytes;
use latlab_part::failure::Result;
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::file;
use latlab_sys::mapping::Mapping;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Dirties all pages of a file, by write and through a mapping in turns, and starts their
/// write-back each time (`sync_file_range`), one worker on each CPU.
///
/// The work of databases and mapped logs: page faults that wait for pages under write-back, and the
/// kernel's write-back threads. The file is unnamed and vanishes with the worker, even after a
/// kill. Counts pages dirtied.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct PageCache {
    /// Folder on the file system to write to
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Size of each worker's file
    #[arg(long, default_value = "32MiB", value_parser = space::page_aligned_size)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

const PAGE: u64 = 4096;

impl Describe for PageCache {
    const ABOUT: About =
        About { name: "page-cache", summary: "dirty a file's pages and write them back" };
}

impl Load for PageCache {
    fn unit(&self) -> &'static str {
        "pages"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        Needs::folder(&self.dir)
    }

    fn check(&self, workers: u64) -> Result<()> {
        let wanted = Bytes(self.size.0.saturating_mul(workers));
        space::check_memory(Self::ABOUT.name, wanted)?;
        space::check_folder(Self::ABOUT.name, &self.dir, wanted)
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let chunk = space::random_chunk(context.seed);
        let file = file::scratch(&self.dir)?;
        context.ready();
        while context.running() {
            let mut offset = 0;
            while offset < self.size.0 && context.running() {
                let left = usize::try_from(self.size.0 - offset).unwrap_or(space::CHUNK);
                let length = chunk.len().min(left);
                file.write_all_at(&chunk[..length], offset)?;
                offset += length as u64;
                context.done(length as u64 / PAGE);
            }
            if !context.running() {
                break;
            }
            file::write_back(&file)?;
            context.done(Mapping::of_file(&file, Bytes(offset))?.touch());
            file::write_back(&file)?;
        }
        Ok(())
    }
}
