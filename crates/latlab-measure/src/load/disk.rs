//! Disk load: a scratch file is written and synced repeatedly.

use super::{Load, LoadContext, Place, space};
use latlab_core::size::Bytes;
use latlab_part::failure::Result;
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::file;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

/// Writes a scratch file and syncs it repeatedly, one worker on each CPU.
///
/// The disk stress of Rapid Reaction Linux (dd, then sync) and of Abeni et al. 2002. The file is
/// unnamed and vanishes with the worker, even after a kill. Counts bytes that have reached the
/// disk.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Disk {
    /// Folder on the file system to write to
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Size of each worker's file
    #[arg(long, default_value = "16MiB", value_parser = space::file_size)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Disk {
    const ABOUT: About = About { name: "disk", summary: "write and sync a scratch file" };
}

impl Load for Disk {
    fn unit(&self) -> &'static str {
        "bytes"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        Needs::folder(&self.dir)
    }

    fn check(&self, workers: u64) -> Result<()> {
        let wanted = Bytes(self.size.0.saturating_mul(workers));
        space::check_folder(Self::ABOUT.name, &self.dir, wanted)
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let chunk = space::random_chunk(context.seed);
        let mut file = file::scratch(&self.dir)?;
        context.ready();
        while context.running() {
            file.seek(SeekFrom::Start(0))?;
            let mut written = 0;
            while written < self.size.0 && context.running() {
                let part =
                    chunk.len().min(usize::try_from(self.size.0 - written).unwrap_or(space::CHUNK));
                file.write_all(&chunk[..part])?;
                written += part as u64;
            }
            file.sync_all()?;
            context.done(written);
        }
        Ok(())
    }
}
