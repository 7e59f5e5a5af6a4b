//! Files: results that are whole or not there, and scratch files that no crash leaves behind.

use latlab_core::time::Nanos;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

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

/// Keeps all CPUs from idle states that take longer than `latency` to leave, until this process,
/// or the program it becomes, has ended (`Documentation/power/pm_qos_interface.rst`).
pub fn hold_cpu_dma_latency(latency: Nanos) -> io::Result<()> {
    let micros = i32::try_from(latency.0 / 1_000).unwrap_or(i32::MAX);
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&micros.to_ne_bytes())?;
    // SAFETY: fcntl with F_SETFD takes no pointers; without close-on-exec the wish outlives exec.
    crate::checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) })?;
    let _ = file.into_raw_fd();
    Ok(())
}

/// A file in the making: its space is taken when it is begun, so that a disk that fills up
/// meanwhile can't lose it, and its name appears only when it is whole.
#[derive(Debug)]
pub struct Pending {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl Pending {
    /// Begins the file at `path` and reserves `room` bytes for it.
    pub fn begin(path: &Path, room: u64) -> io::Result<Pending> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let file = File::create(&temporary)?;
        let pending = Pending { file, temporary, path: path.to_owned() };
        if room > 0 {
            pending.reserve(room)?;
        }
        Ok(pending)
    }

    fn reserve(&self, room: u64) -> io::Result<()> {
        let room = i64::try_from(room).unwrap_or(i64::MAX);
        // SAFETY: posix_fallocate takes no pointers.
        match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), 0, room) } {
            // Not every file system can; then the promise is the weaker one.
            0 | libc::EOPNOTSUPP | libc::EINVAL => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Writes the file and gives it its name.
    pub fn finish(mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.set_len(bytes.len() as u64)?;
        self.file.sync_all()?;
        std::fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Gone already where it got its name.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Writes a file that is there whole or, after any failure, as it was.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Pending::begin(path, 0)?.finish(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_whole_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        let pending = Pending::begin(&path, 1 << 20).unwrap();
        assert!(!path.exists());
        pending.finish(b"whole").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        drop(Pending::begin(&path, 10).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_scratch_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        scratch(folder.path()).unwrap().write_all(b"x").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
