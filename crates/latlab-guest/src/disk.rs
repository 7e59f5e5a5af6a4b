//! The guest's disk: it gets the pages of a file system that are not empty, and writes them to its disk in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Path of the pages in the guest, each after its offset on the disk.
pub const PAGES: &str = "/latlab.disk";

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Bytes of the offset that precedes a page, little-endian.
pub const OFFSET: usize = 8;

/// Writes the pages to the disk.
pub(super) fn write(disk: &File) -> io::Result<()> {
    for page in std::fs::read(PAGES)?.chunks_exact(OFFSET + PAGE) {
        let (offset, page) = page.split_at(OFFSET);
        let offset = offset.try_into().map(u64::from_le_bytes).expect("it has eight bytes");
        disk.write_all_at(page, offset)?;
    }
    Ok(())
}
