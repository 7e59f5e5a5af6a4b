//! Memory and disk space of loads: checks, sizes as users write them, and data to be written.

use latlab_core::random::Random;
use latlab_core::size::Bytes;
use latlab_part::failure::{Failure, Result};
use latlab_sys::{file, memory};
use std::io::{self, Write as _};
use std::path::Path;

/// Refuses a load whose workers together need more memory than is available.
pub(super) fn check_memory(load: &str, wanted: Bytes) -> Result<()> {
    match memory::available() {
        Some(free) if free < wanted => Err(Failure::failed(format!(
            "{load}: the workers together need {wanted} of memory, {free} are available: choose a \
             smaller size"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a folder that can't be written to or has too little space.
pub(super) fn check_folder(load: &str, dir: &Path, wanted: Bytes) -> Result<()> {
    let cannot = |e: io::Error| {
        let dir = dir.display();
        Failure::failed(format!(
            "{load}: {dir} can't be written to ({e}): choose another with dir="
        ))
    };
    file::scratch(dir).map_err(cannot)?.write_all(&[0]).map_err(cannot)?;
    let free = Bytes(file::free_space(dir).map_err(cannot)?);
    if free < wanted {
        let dir = dir.display();
        return Err(Failure::failed(format!(
            "{load}: {dir} has {free} free, the load needs {wanted}: choose another with dir=, or a \
             smaller size="
        )));
    }
    Ok(())
}

/// Bytes per write.
pub(super) const CHUNK: usize = 128 * 1024;

/// [`CHUNK`] random bytes, which no file system can compress.
pub(super) fn random_chunk(seed: u64) -> Vec<u8> {
    Random::new(seed).flat_map(u64::to_ne_bytes).take(CHUNK).collect()
}

/// Reads the size of a file: more than 0 bytes.
pub(super) fn file_size(text: &str) -> std::result::Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if size.0 > 0 { Ok(size) } else { Err("the file must be larger than 0B".to_owned()) }
}

/// Reads the size of a buffer: 4 KiB to 1 TiB.
pub(super) fn buffer_size(text: &str) -> std::result::Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if (4096..=1 << 40).contains(&size.0) {
        Ok(size)
    } else {
        Err(format!("{text} is not 4KiB to 1024GiB"))
    }
}

/// Reads the size of a buffer in whole pages of 4 KiB.
pub(super) fn page_aligned_size(text: &str) -> std::result::Result<Bytes, String> {
    match buffer_size(text) {
        Ok(size) if size.0.is_multiple_of(4096) => Ok(size),
        Ok(_) => Err(format!("{text} is not a multiple of 4KiB")),
        Err(why) => Err(format!("{why}, a multiple of 4KiB")),
    }
}
