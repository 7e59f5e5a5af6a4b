//! The disk load of Rapid Reaction Linux: dd and sync in turns.

use super::{Load, LoadContext, Place, space};
use latlab_core::size::Bytes;
use latlab_part::failure::Result;
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::file;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;

/// Copies zeros into a file as dd does, block by block, and then syncs all file systems, in turns,
/// one worker for the machine.
///
/// The hard disk stress of Heursch and Rzehak 2001 (Rapid Reaction Linux, tables 1 and 5), after
/// Wilshire 2000. It calls sync(2), which also writes back the dirty data of other programs. The
/// file is unnamed and vanishes with the worker, even after a kill. Counts bytes that dd has
/// written.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct WilshireDisk {
    /// Folder on the file system to write to
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Size of the file
    #[arg(long, default_value = "64MiB", value_parser = space::file_size)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

/// Default block size of dd, in bytes.
const BLOCK: usize = 512;

impl Describe for WilshireDisk {
    const ABOUT: About = About {
        name: "wilshire-disk",
        summary: "alternating dd and sync, as in Rapid Reaction Linux",
    };
}

impl Load for WilshireDisk {
    fn unit(&self) -> &'static str {
        "bytes"
    }

    fn one_worker(&self) -> bool {
        true
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        Needs::folder(&self.dir)
    }

    fn check(&self, _: u64) -> Result<()> {
        space::check_folder(Self::ABOUT.name, &self.dir, self.size)
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let (mut from, mut to) = (File::open("/dev/zero")?, file::scratch(&self.dir)?);
        context.ready();
        while context.running() {
            self.dd(context, &mut from, &mut to)?;
            file::sync_all();
        }
        Ok(())
    }
}

impl WilshireDisk {
    /// Truncates and writes the file, up to its size or until the end of the run.
    fn dd(&self, context: &LoadContext, from: &mut File, to: &mut File) -> io::Result<()> {
        let mut block = [0; BLOCK];
        to.set_len(0)?;
        to.rewind()?;
        let mut written = 0;
        while written < self.size.0 && context.running() {
            from.read_exact(&mut block)?;
            to.write_all(&block)?;
            written += BLOCK as u64;
            context.done(BLOCK as u64);
        }
        Ok(())
    }
}
