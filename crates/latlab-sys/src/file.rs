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

/// A file in memory, without a name anywhere (`memfd_create(2)`).
pub fn in_memory() -> io::Result<File> {
    // SAFETY: the name, for the eyes of debuggers, is a constant string with its final zero.
    let fd = unsafe { libc::memfd_create(c"latlab".as_ptr(), libc::MFD_CLOEXEC) };
    let fd = crate::checked(fd)?;
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

/// Whether reading and writing pass the page cache by (`O_DIRECT`): buffers, places and lengths are
/// to be multiples of 4096 bytes then. EINVAL where the file system can't.
pub fn pass_cache_by(file: &File, so: bool) -> io::Result<()> {
    let flags = libc::O_RDWR | if so { libc::O_DIRECT } else { 0 };
    // SAFETY: fcntl with F_SETFL takes no pointers.
    crate::checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) }).map(drop)
}

/// Has the kernel begin to write back what is dirty of `file`, and does not wait for it
/// (`sync_file_range(2)`).
pub fn write_back(file: &File) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WRITE;
    // SAFETY: sync_file_range takes no pointers; a length of 0 is all of the file.
    crate::checked(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) }).map(drop)
}

/// Has all file systems write what they hold back, and waits for it (`sync(2)`).
#[inline]
pub fn sync_all() {
    // SAFETY: sync takes nothing and always succeeds.
    unsafe { libc::sync() };
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
    /// Where it lies until it is whole, and the name it gets then. None for what is not a plain
    /// file, as `/dev/stdout`: that is written to as it is.
    names: Option<(PathBuf, PathBuf)>,
}

impl Pending {
    /// Begins the file at `path` and reserves `room` bytes for it. A symbolic link stays one: what
    /// it points to is replaced.
    pub fn begin(path: &Path, room: u64) -> io::Result<Pending> {
        let there = std::fs::metadata(path);
        if there.as_ref().is_ok_and(|there| !there.is_file()) {
            return Ok(Pending { file: File::options().write(true).open(path)?, names: None });
        }
        let path = if there.is_ok() { path.canonicalize()? } else { path.to_owned() };
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        remove_abandoned(&path, &name);
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let pending =
            Pending { file: File::create(&temporary)?, names: Some((temporary, path.clone())) };
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
        let Some((temporary, path)) = &self.names else { return Ok(()) };
        self.file.set_len(bytes.len() as u64)?;
        self.file.sync_all()?;
        std::fs::rename(temporary, path)?;
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.names {
            // Gone already where the file got its name.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Removes what processes that were killed had begun for the same name.
fn remove_abandoned(path: &Path, name: &str) {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
    for entry in entries.flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        let process = other
            .strip_prefix(&format!(".{name}."))
            .and_then(|rest| rest.strip_suffix(".tmp"))
            .and_then(|process| process.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes a file that is there whole or, after any failure, as it was.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Pending::begin(path, 0)?.finish(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        write_atomically(&path, b"first").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(names(directory.path()), ["record.json"]);
    }

    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        write_atomically(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        write_atomically(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_failure_names_the_file_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("no/such/place.html");
        let error = write_atomically(&path, b"text").unwrap_err().to_string();
        assert!(error.contains("No such file or directory"), "{error}");
        let taken = directory.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        assert!(write_atomically(&taken, b"text").is_err());
        assert_eq!(names(directory.path()), ["taken"]);
    }

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
    fn what_a_killed_process_had_begun_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        // The first process is there; none has so large a number.
        for process in [1, 4_000_000_000_u32] {
            File::create(folder.path().join(format!(".record.json.{process}.tmp"))).unwrap();
        }
        write_atomically(&path, b"whole").unwrap();
        let mut names = names(folder.path());
        names.sort();
        assert_eq!(names, [".record.json.1.tmp", "record.json"]);
    }

    #[test]
    fn a_scratch_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        scratch(folder.path()).unwrap().write_all(b"x").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
