//! Files: results that are whole or not there, and scratch files that no crash leaves behind.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A file without a name in `directory`, for scratch: the kernel removes it with its last user.
pub fn scratch(directory: &Path) -> io::Result<File> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: `path` is a string with its final zero.
    let fd = crate::checked(unsafe { libc::open(path.as_ptr(), flags, 0o600) })?;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Bytes that an ordinary user may still write in the file system of `directory`.
pub fn free_space(directory: &Path) -> io::Result<u64> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: statvfs is made of integers, for which all bits zero is a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is a string with its final zero, `stat` valid to write to.
    crate::checked(unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) })?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
