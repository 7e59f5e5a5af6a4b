//! Files: results that are written as a whole or not at all, and scratch files without a name.

use crate::descriptor;
use latlab_core::time::Nanos;
use rustix::fs::{MemfdFlags, Mode, OFlags, SeekFrom};
use std::fs::{File, Metadata, Permissions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, IntoRawFd as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Opens a file without a name in `directory` (`O_TMPFILE`): the kernel frees it when the last
/// process closes it.
pub fn scratch(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Opens a file in memory, without a name in any file system (`memfd_create(2)`).
pub fn in_memory() -> io::Result<File> {
    // Only debuggers see this name.
    Ok(rustix::fs::memfd_create(c"latlab", MemfdFlags::CLOEXEC)?.into())
}

/// Reads an open file from its beginning to its end.
pub fn contents(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file of at most `most` bytes, which may be a pipe. A longer one is an error of kind
/// [`io::ErrorKind::FileTooLarge`].
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("it is longer than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a text that people write, such as a configuration: at most 1 MiB of UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    const LONGEST: u64 = 1 << 20;
    let text = String::from_utf8(read_at_most(path, LONGEST)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Bytes that an ordinary user can still write in the file system of `directory`.
pub fn free_space(directory: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(directory)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Whether the file system of this file has no room for a megabyte, so that an access to a mapping of the
/// file may kill a process (SIGBUS).
pub fn is_on_full_disk(file: &File) -> bool {
    let is_full = |stat: rustix::fs::StatVfs| {
        // A file in memory belongs to a file system without a size.
        stat.f_blocks > 0 && stat.f_bavail.saturating_mul(stat.f_frsize) < 1 << 20
    };
    rustix::fs::fstatvfs(file).is_ok_and(is_full)
}

/// Copies the contents of `from` to the empty file `to`, which has holes where `from` has pages of
/// zeros or holes.
pub fn copy_sparse(from: &File, to: &File) -> io::Result<()> {
    to.set_len(from.metadata()?.len())?;
    for_each_page(from, |at, page| to.write_all_at(page, at))
}

/// Calls `visit` with the offset and the contents of each page of a file that is not only zeros, in
/// their order. The last page may be short.
pub fn for_each_page(
    from: &File,
    mut visit: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    const PAGE: usize = 4096;
    let length = from.metadata()?.len();
    let mut buffer = vec![0; 256 * PAGE];
    let mut at = 0;
    while let Some(data) = next_data(from, at)? {
        at = data - data % PAGE as u64;
        let wanted = buffer.len().min(usize::try_from(length - at).unwrap_or(usize::MAX));
        let read = from.read_at(&mut buffer[..wanted], at)?;
        for page in buffer[..read].chunks(PAGE) {
            if page.iter().any(|byte| *byte != 0) {
                visit(at, page)?;
            }
            at += page.len() as u64;
        }
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// The first byte from `at` on that lies in no hole of the file.
fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Switches direct I/O, which bypasses the page cache, on or off (`O_DIRECT`). With it, buffers,
/// offsets and lengths must be multiples of 4096 bytes. EINVAL where the file system has none.
pub fn set_direct_io(file: &File, direct: bool) -> io::Result<()> {
    let direct = if direct { OFlags::DIRECT } else { OFlags::empty() };
    Ok(rustix::fs::fcntl_setfl(file, OFlags::RDWR | direct)?)
}

/// Starts to write back the dirty pages of `file`, and does not wait for that
/// (`sync_file_range(2)`).
pub fn write_back(file: &File) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WRITE;
    // SAFETY: sync_file_range takes no pointers; a length of 0 is the whole file.
    crate::checked(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) }).map(drop)
}

/// Writes back the dirty pages of all file systems, and waits for that (`sync(2)`).
///
/// This call is scanned, so it goes through the C library: its number of instructions must not
/// change.
#[inline]
pub fn sync_all() {
    // SAFETY: sync takes nothing and always succeeds.
    unsafe { libc::sync() };
}

/// Keeps all CPUs out of idle states whose exit latency exceeds `latency`, until this process, or
/// the program that it becomes, has ended (`Documentation/power/pm_qos_interface.rst`).
pub fn hold_cpu_dma_latency(latency: Nanos) -> io::Result<()> {
    let micros = i32::try_from(latency.0 / 1_000).unwrap_or(i32::MAX);
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&micros.to_ne_bytes())?;
    // The request lasts as long as the file is open: it is not closed here, nor by exec.
    descriptor::keep_open(file.into_raw_fd())
}

/// Writes a file as a whole: after a failure it is unchanged.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Pending::begin(path, 0)?.finish(bytes)
}

/// Writes `bytes` to a new file in `folder`, which others may be able to write, and returns its path.
/// Its name is `prefix`, random characters and `suffix`; only this user can read it. After a failure
/// there is no file.
pub fn write_new(folder: &Path, prefix: &str, suffix: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut new = tempfile::Builder::new();
    let mut new = new.prefix(prefix).suffix(suffix).tempfile_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    let (_, path) = new.keep()?;
    Ok(path)
}

/// Opens or creates a regular file, to append to it. Anything else at `path` is an error: whoever may
/// write in its folder could aim a link at another file, or keep this process waiting with a pipe.
pub fn append_to(path: &Path) -> io::Result<File> {
    use rustix::io::Errno;
    let refused = || io::Error::other("it is no regular file: remove it, or name another one");
    let flags = OFlags::APPEND | OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    // Without O_NONBLOCK, which regular files ignore, opening a pipe waits for its reader.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file: File = match rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)) {
        Err(Errno::LOOP | Errno::NXIO) => return Err(refused()),
        opened => opened?.into(),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

/// Opens a regular file to read it. Anything else at `path`, a link too, is an error and is not opened:
/// opening a pipe waits for its writer, and opening a device may start its function.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place: File = rustix::fs::open(path, flags, Mode::empty())?.into();
    if !place.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

/// A file that is being written. Its space is reserved at the start, so that a disk that becomes
/// full meanwhile does not lose it. Its name appears when it is complete.
#[derive(Debug)]
pub struct Pending {
    file: File,
    /// The temporary path, removed on drop, and the final one. None if it is not a regular file,
    /// such as `/dev/stdout`: it is written directly.
    names: Option<(TempPath, PathBuf)>,
}

impl Pending {
    /// Begins the file at `path` and reserves `room` bytes for it. A symbolic link of this user or of root
    /// is followed: the file that it points to is replaced, and keeps its mode and its owner. A link of
    /// another user is an error: that user chose which file it aims at.
    pub fn begin(path: &Path, room: u64) -> io::Result<Pending> {
        if std::fs::symlink_metadata(path).is_ok_and(|there| is_link_of_another(&there)) {
            let why = "it is a symbolic link of another user: name the file itself";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let mut present = std::fs::metadata(path);
        if present.as_ref().is_ok_and(|present| !present.is_file()) {
            return Ok(Pending { file: File::options().write(true).open(path)?, names: None });
        }
        let mut path = path.to_owned();
        if present.is_ok() {
            // From here on it is one file, wherever a link may point meanwhile.
            path = path.canonicalize()?;
            present = std::fs::symlink_metadata(&path);
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        remove_abandoned(folder_of(&path), |other| other == name);
        let (file, temporary) = temporary(folder_of(&path), &name)?;
        if let Ok(present) = present {
            keep_access(&file, &present)?;
        }
        let pending = Pending { file, names: Some((temporary, path.clone())) };
        if room > 0 {
            pending.reserve(room)?;
        }
        Ok(pending)
    }

    fn reserve(&self, room: u64) -> io::Result<()> {
        let room = i64::try_from(room).unwrap_or(i64::MAX);
        // The C library's function also reserves space in file systems that have no fallocate(2).
        // SAFETY: posix_fallocate takes no pointers.
        match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), 0, room) } {
            // Some file systems can't reserve space; then a full disk is noticed later.
            0 | libc::EOPNOTSUPP | libc::EINVAL => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Writes the content and renames the file to its final name.
    pub fn finish(mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        let Some((temporary, path)) = self.names else { return Ok(()) };
        self.file.set_len(bytes.len() as u64)?;
        self.file.sync_all()?;
        temporary.persist(&path)?;
        File::open(folder_of(&path))?.sync_all()
    }
}

/// Whether this is a symbolic link that neither this user nor root has made.
fn is_link_of_another(there: &Metadata) -> bool {
    let own = rustix::process::geteuid().as_raw();
    there.is_symlink() && ![0, own].contains(&there.uid())
}

/// Creates a file with a random name, so that nobody can put a link in its place. Its lock shows that
/// it is not abandoned.
fn temporary(folder: &Path, name: &str) -> io::Result<(File, TempPath)> {
    let prefix = format!(".{name}.");
    let usual = Permissions::from_mode(0o666);
    loop {
        let mut new = tempfile::Builder::new();
        new.prefix(&prefix).suffix(TEMPORARY).permissions(usual.clone());
        let (file, path) = new.tempfile_in(folder)?.into_parts();
        // Before it was locked another process may have taken it for an abandoned one.
        let is_ours = match file.try_lock() {
            Ok(()) => file.metadata()?.nlink() > 0,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(_)) => true,
        };
        if is_ours {
            return Ok((file, path));
        }
    }
}

/// The end of the names of temporary files.
const TEMPORARY: &str = ".tmp";

/// Gives a file the mode and, if this process may do that, the owner of the file that it replaces.
fn keep_access(file: &File, present: &Metadata) -> io::Result<()> {
    let ours = file.metadata()?;
    if (ours.uid(), ours.gid()) != (present.uid(), present.gid()) {
        // An ordinary user can't give files away.
        let _ = std::os::unix::fs::fchown(file, Some(present.uid()), Some(present.gid()));
    }
    file.set_permissions(Permissions::from_mode(present.mode() & 0o777))
}

/// Removes the temporary files that killed processes left in `folder`, for files whose name
/// `is_ours`: nobody has locked them. Files that can't be removed stay.
pub fn remove_abandoned(folder: &Path, is_ours: impl Fn(&str) -> bool) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if file && final_name(&name).is_some_and(&is_ours) {
            let Ok(file) = File::open(entry.path()) else { continue };
            // Removed while it is locked: another process may have created it just now, and takes a
            // file that it can lock for its own.
            if file.try_lock().is_ok() {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// The name that a temporary file gets when it is complete; none if it is no temporary file.
fn final_name(temporary: &str) -> Option<&str> {
    let (name, _random) = temporary.strip_prefix('.')?.strip_suffix(TEMPORARY)?.rsplit_once('.')?;
    Some(name)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn file_write_replaces_the_file_and_leaves_no_temporary_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        write_atomically(&path, b"first").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(names(directory.path()), ["record.json"]);
    }

    #[test]
    fn file_write_follows_links_and_writes_to_devices() {
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
    fn file_write_that_fails_leaves_no_temporary_file() {
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
    fn file_that_is_replaced_keeps_its_mode_and_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        write_atomically(&path, b"first").unwrap();
        if crate::process::is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        }
        let owner = std::fs::metadata(&path).unwrap().uid();
        for mode in [0o600, 0o664] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            write_atomically(&path, b"again").unwrap();
            let there = std::fs::metadata(&path).unwrap();
            assert_eq!((there.mode() & 0o777, there.uid()), (mode, owner));
        }
    }

    /// Whoever may write in the folder could put a link in place of a name that it can predict.
    #[test]
    fn file_being_written_has_a_name_that_nobody_can_predict() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        let begin = || Pending::begin(&path, 0).unwrap();
        let (first, second) = (begin(), begin());
        let name = |pending: &Pending| pending.names.as_ref().unwrap().0.to_path_buf();
        assert_ne!(name(&first), name(&second));
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    fn file_pending_appears_when_it_is_finished() {
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
    fn file_begun_by_a_killed_process_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        File::create(folder.path().join(".record.json.x7Ab2c.tmp")).unwrap();
        File::create(folder.path().join(".other.json.x7Ab2c.tmp")).unwrap();
        let under_way = Pending::begin(&path, 0).unwrap();
        write_atomically(&path, b"whole").unwrap();
        under_way.finish(b"later").unwrap();
        let mut names = names(folder.path());
        names.sort();
        assert_eq!(names, [".other.json.x7Ab2c.tmp", "record.json"]);
        assert_eq!(std::fs::read(&path).unwrap(), b"later");
    }

    #[test]
    fn file_is_not_written_through_a_link_of_another_user() {
        if !latlab_testing::root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write_atomically(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        let refused = write_atomically(&link, b"new").unwrap_err().to_string();
        assert!(refused.contains("link of another user"), "{refused}");
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
    }

    #[test]
    fn file_opened_as_a_regular_one_is_no_link_pipe_or_device() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.path().join(name));
        write_atomically(&file, b"content").unwrap();
        assert_eq!(contents(&open_regular(&file).unwrap()).unwrap(), b"content");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        for path in [link.as_path(), &pipe, Path::new("/dev/null")] {
            assert!(open_regular(path).unwrap_err().to_string().contains("no regular file"));
        }
    }

    #[test]
    fn file_to_append_to_is_a_regular_one() {
        let folder = tempfile::tempdir().unwrap();
        let [log, link, pipe] = ["log", "link", "pipe"].map(|name| folder.path().join(name));
        for line in [b"one\n", b"two\n"] {
            append_to(&log).unwrap().write_all(line).unwrap();
        }
        assert_eq!(std::fs::read(&log).unwrap(), b"one\ntwo\n");
        std::os::unix::fs::symlink(&log, &link).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        // Once it has a reader it can be opened.
        let without_reader = append_to(&pipe);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let _reader = rustix::fs::open(&pipe, flags, Mode::empty()).unwrap();
        for refused in
            [append_to(&link), without_reader, append_to(&pipe), append_to(Path::new("/dev/null"))]
        {
            assert!(refused.unwrap_err().to_string().contains("no regular file"));
        }
    }

    /// Each takes the temporary file of another, which is not locked yet, for an abandoned one.
    #[test]
    fn file_begun_by_several_at_once_is_written_by_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        Pending::begin(&path, 0).unwrap().finish(b"whole").unwrap();
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["record.json"]);
    }

    #[test]
    fn file_sparse_copy_has_the_same_bytes_and_holes_for_zeros() {
        let from = in_memory().unwrap();
        from.set_len((8 << 20) + 5).unwrap();
        for (at, bytes) in
            [(4_000, &b"across two pages"[..]), (5 << 20, &[0; 8192]), (8 << 20, b"end")]
        {
            from.write_all_at(&bytes.repeat(10), at).unwrap();
        }
        from.set_len((8 << 20) + 5).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let to = scratch(folder.path()).unwrap();
        copy_sparse(&from, &to).unwrap();
        let contents = |file: &File| {
            let mut bytes = vec![0; (8 << 20) + 5];
            file.read_exact_at(&mut bytes, 0).map(|()| bytes).unwrap()
        };
        assert_eq!(contents(&from), contents(&to));
        assert_eq!(to.metadata().unwrap().len(), (8 << 20) + 5);
        assert!(to.metadata().unwrap().blocks() * 512 < 64 << 10);
    }

    #[test]
    fn file_without_an_end_is_refused() {
        let error = read_at_most(Path::new("/dev/zero"), 100_000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(read_at_most(Path::new("/dev/null"), 0).unwrap().is_empty());
    }

    #[test]
    fn file_scratch_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        scratch(folder.path()).unwrap().write_all(b"x").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
