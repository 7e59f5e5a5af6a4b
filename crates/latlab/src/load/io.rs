//! Large copies: between a program, the page cache and a device.

use super::{Bench, Load, Place, room};
use crate::failure::{Failure, Result};
use crate::needs::Needs;
use crate::registry::About;
use latlab_core::size::Bytes;
use latlab_sys::file;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Copies large buffers from user space to the page cache and back, and from user space to the
/// device and back past the page cache (`O_DIRECT`), in single calls, one worker on each CPU.
///
/// The I/O load of Abeni et al. 2002 (section 5.2, table 1): system calls that move large amounts
/// of data between user and kernel space, and from the kernel's memory to hardware. The file has no
/// name: whatever ends latlab, nothing is left of it. Its work is counted in bytes copied.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Io {
    /// Folder on a disk; its file system has to be able to pass the page cache by
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// What one call copies
    #[arg(long, default_value = "16MiB", value_parser = room::pages)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Load for Io {
    const ABOUT: About =
        About { name: "io", summary: "large copies to and from the page cache and a disk" };
    const UNIT: &'static str = "bytes";

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        Needs::folder(&self.dir)
    }

    fn check(&self, workers: u64) -> Result<()> {
        let wanted = Bytes(self.size.0.saturating_mul(workers));
        room::in_memory(Self::ABOUT.name, wanted)?;
        room::in_folder(Self::ABOUT.name, &self.dir, wanted)?;
        let directly = |file: File| file::pass_cache_by(&file, true);
        file::scratch(&self.dir).and_then(directly).map_err(|e| {
            let dir = self.dir.display();
            Failure::Unsupported(format!(
                "io: {dir} is on no disk that can pass the page cache by ({e}): name another with \
                 dir="
            ))
        })
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let size = usize::try_from(self.size.0).map_err(io::Error::other)?;
        let mut buffer = room::chunk(bench.seed).repeat(size.div_ceil(room::CHUNK) + 1);
        let start = buffer.as_ptr().align_offset(ALIGNMENT);
        let buffer = &mut buffer[start..start + size];
        let file = file::scratch(&self.dir)?;
        bench.ready();
        while bench.running() {
            for past_the_cache in [false, true] {
                file::pass_cache_by(&file, past_the_cache)?;
                copy(bench, |done| file.write_at(&buffer[done..], done as u64), size)?;
                copy(bench, |done| file.read_at(&mut buffer[done..], done as u64), size)?;
            }
        }
        Ok(())
    }
}

/// What devices want of the buffers that they read and write themselves.
const ALIGNMENT: usize = 4096;

/// Copies all, in as few calls as the kernel takes.
fn copy(
    bench: &Bench,
    mut from: impl FnMut(usize) -> io::Result<usize>,
    size: usize,
) -> io::Result<()> {
    let mut done = 0;
    while done < size && bench.running() {
        let copied = from(done)?;
        if copied == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bench.done(copied as u64);
        done += copied;
    }
    Ok(())
}
