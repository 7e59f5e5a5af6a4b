//! I/O load: large copies between user space, the page cache and a device.

use super::{Load, LoadContext, Place, space};
use latlab_core::size::Bytes;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::file;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Copies large buffers from user space to the page cache and back, and from user space to the
/// device and back without the page cache (`O_DIRECT`), in single calls, one worker on each CPU.
///
/// The I/O load of Abeni et al. 2002 (section 5.2, table 1): system calls that move large amounts
/// of data between user and kernel space, and from the kernel's memory to hardware. The file is
/// unnamed and vanishes with the worker, even after a kill. Counts bytes copied.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Io {
    /// Folder on a disk, on a file system that supports `O_DIRECT`
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
    /// Bytes that one call copies
    #[arg(long, default_value = "16MiB", value_parser = space::page_aligned_size)]
    size: Bytes,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Io {
    const ABOUT: About =
        About { name: "io", summary: "large copies to and from the page cache and a disk" };
}

impl Load for Io {
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
        space::check_memory(Self::ABOUT.name, wanted)?;
        space::check_folder(Self::ABOUT.name, &self.dir, wanted)?;
        let set_direct = |file: File| file::set_direct_io(&file, true);
        file::scratch(&self.dir).and_then(set_direct).map_err(|e| {
            let dir = self.dir.display();
            Failure::unsupported(format!(
                "io: {dir} is on a file system without O_DIRECT ({e}): choose another folder with \
                 dir="
            ))
        })
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let size = usize::try_from(self.size.0).map_err(io::Error::other)?;
        let mut buffer = space::random_chunk(context.seed).repeat(size.div_ceil(space::CHUNK) + 1);
        let start = buffer.as_ptr().align_offset(ALIGNMENT);
        let buffer = &mut buffer[start..start + size];
        let file = file::scratch(&self.dir)?;
        context.ready();
        while context.running() {
            for direct in [false, true] {
                file::set_direct_io(&file, direct)?;
                copy(context, |done| file.write_at(&buffer[done..], done as u64), size)?;
                copy(context, |done| file.read_at(&mut buffer[done..], done as u64), size)?;
            }
        }
        Ok(())
    }
}

/// Alignment of buffers that devices read and write directly.
const ALIGNMENT: usize = 4096;

/// Copies `size` bytes, in as few calls as the kernel allows.
fn copy(
    context: &LoadContext,
    mut from: impl FnMut(usize) -> io::Result<usize>,
    size: usize,
) -> io::Result<()> {
    let mut done = 0;
    while done < size && context.running() {
        let copied = from(done)?;
        if copied == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        context.done(copied as u64);
        done += copied;
    }
    Ok(())
}
