//! Room for what loads do: enough memory, and a folder that can be written to.

use crate::failure::{Failure, Result};
use latlab_core::random::Random;
use latlab_core::size::Bytes;
use latlab_sys::{file, memory};
use std::io::{self, Write as _};
use std::path::Path;

/// Refuses more memory than there is.
pub(super) fn in_memory(load: &str, wanted: Bytes) -> Result<()> {
    match memory::available() {
        Some(free) if free < wanted => Err(Failure::Failed(format!(
            "{load}: the workers would take {wanted} together, {free} are available: give a \
             smaller size"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a folder that can't be written to or has no room.
pub(super) fn in_folder(load: &str, dir: &Path, wanted: Bytes) -> Result<()> {
    let cannot = |e: io::Error| {
        let dir = dir.display();
        Failure::Failed(format!("{load}: {dir} can't be written to ({e}): name another with dir="))
    };
    file::scratch(dir).map_err(cannot)?.write_all(&[0]).map_err(cannot)?;
    let free = Bytes(file::free_space(dir).map_err(cannot)?);
    if free < wanted {
        let dir = dir.display();
        return Err(Failure::Failed(format!(
            "{load}: {dir} has {free} free, the load needs {wanted}: name another with dir=, or a \
             smaller size="
        )));
    }
    Ok(())
}

/// What is written at a time.
pub(super) const CHUNK: usize = 128 * 1024;

/// A chunk that no file system can compress away.
pub(super) fn chunk(seed: u64) -> Vec<u8> {
    Random::new(seed).flat_map(u64::to_ne_bytes).take(CHUNK).collect()
}

/// The size of a file that is a load.
pub(super) fn size(text: &str) -> std::result::Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if size.0 > 0 { Ok(size) } else { Err("a file of 0B is no load".to_owned()) }
}

/// A size from one page to as much as a buffer may have.
pub(super) fn buffer(text: &str) -> std::result::Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|e| format!("{e}"))?;
    if (4096..=1 << 40).contains(&size.0) {
        Ok(size)
    } else {
        Err(format!("{text} is not 4KiB to 1024GiB"))
    }
}

/// Such a size, in whole pages.
pub(super) fn pages(text: &str) -> std::result::Result<Bytes, String> {
    match buffer(text) {
        Ok(size) if size.0.is_multiple_of(4096) => Ok(size),
        Ok(_) => Err(format!("{text} is not a multiple of 4KiB")),
        Err(why) => Err(format!("{why}, a multiple of 4KiB")),
    }
}
