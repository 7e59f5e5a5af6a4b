//! File descriptors that are passed from a process to the program that it starts.

use latlab_core::size::Bytes;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// Takes over the descriptor that the parent process left open under this number
/// ([`crate::process::inherit`]). Programs that this process starts do not get it.
pub fn inherited(fd: RawFd) -> io::Result<File> {
    set_flags(fd, libc::FD_CLOEXEC)?;
    // SAFETY: it is open; the parent gave the number for this purpose, and it is used once.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Takes over a descriptor of memory ([`crate::file::in_memory`]) as [`inherited`] does. An error if
/// it has not `size` bytes: an access to a mapping beyond the end of its file kills the process.
pub(crate) fn inherited_memory(fd: RawFd, size: Bytes) -> io::Result<OwnedFd> {
    let file = inherited(fd)?;
    if file.metadata()?.len() != size.0 {
        let why = format!("descriptor {fd} is not memory of {size}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(file.into())
}

/// Opens a pipe: the end to read from and the end to write to.
pub fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = io::pipe()?;
    Ok((OwnedFd::from(reader).into(), OwnedFd::from(writer).into()))
}

/// Leaves a descriptor open in the program that this process becomes.
pub(crate) fn keep_open(fd: RawFd) -> io::Result<()> {
    set_flags(fd, 0)
}

/// A number, not a borrowed descriptor: it may be used in a forked child, and may be wrong.
fn set_flags(fd: RawFd, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: fcntl with F_SETFD takes no pointers; it fails where the descriptor is not open.
    crate::checked(unsafe { libc::fcntl(fd, libc::F_SETFD, flags) }).map(drop)
}
