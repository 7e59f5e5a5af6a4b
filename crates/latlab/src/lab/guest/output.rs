//! What a guest and its QEMU write: files in memory that only grow.

use latlab_sys::file;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The files.
pub(super) struct Outputs {
    /// The kernel's console.
    pub(super) console: File,
    /// Messages from latlab in the guest.
    pub(super) port: File,
    /// QEMU's own output.
    pub(super) stderr: File,
    /// The recording of the plugin.
    pub(super) trace: File,
}

impl Outputs {
    /// Empty files.
    pub(super) fn new() -> io::Result<Outputs> {
        Ok(Outputs {
            console: file::in_memory()?,
            port: file::in_memory()?,
            stderr: file::in_memory()?,
            trace: file::in_memory()?,
        })
    }
}

/// The contents of a file from `offset` on.
pub(super) fn text_from(file: &File, offset: u64) -> io::Result<String> {
    let length = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The contents of a file.
pub(super) fn text(file: &File) -> io::Result<String> {
    text_from(file, 0)
}
