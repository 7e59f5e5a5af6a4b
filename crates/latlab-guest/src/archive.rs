//! The initramfs: a cpio archive in the format "newc", which the guest's kernel unpacks as its
//! root, and latlab in the guest where a job follows later.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

// File types (inode(7)): the upper bits of the mode.
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const KIND: u32 = 0o170_000;

/// The name of the entry that ends an archive.
const END: &str = "TRAILER!!!";

/// An archive in memory (`Documentation/driver-api/early-userspace/buffer-format.rst`). The same
/// calls result in the same bytes: everything belongs to root and is dated 1970. Parent folders are
/// added automatically; of two entries with one path the first counts. Paths are absolute paths of
/// the guest, without `..`.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    paths: BTreeSet<PathBuf>,
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Archive {
        Archive::default()
    }

    /// Adds a folder with mode 755.
    pub fn folder(&mut self, path: impl AsRef<Path>) {
        self.add(path.as_ref(), FOLDER | 0o755, &[]);
    }

    /// Adds a file with these permissions. The format allows less than 4 GiB per file.
    pub fn file(&mut self, path: impl AsRef<Path>, mode: u32, bytes: &[u8]) {
        self.add(path.as_ref(), FILE | (mode & 0o7777), bytes);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: impl AsRef<Path>, target: impl AsRef<Path>) {
        self.add(path.as_ref(), LINK | 0o777, target.as_ref().as_os_str().as_bytes());
    }

    /// The complete archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.write(0, Path::new(END), 0, &[]);
        self.bytes
    }

    fn add(&mut self, path: &Path, mode: u32, bytes: &[u8]) {
        let path: PathBuf =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        if path.as_os_str().is_empty() || self.paths.contains(&path) {
            return;
        }
        if let Some(parent) = path.parent() {
            self.folder(parent);
        }
        self.write(self.paths.len() + 1, &path, mode, bytes);
        self.paths.insert(path);
    }

    fn write(&mut self, inode: usize, path: &Path, mode: u32, bytes: &[u8]) {
        let path = path.as_os_str().as_bytes();
        let (size, path_size) = (bytes.len(), path.len() + 1);
        // Magic, inode, mode, user, group, links, time, size, major and minor of the file system's
        // device, major and minor of a device file, length of the path, checksum.
        let header = format!(
            "070701{inode:08X}{mode:08X}{0:08X}{0:08X}{1:08X}{0:08X}{size:08X}{0:08X}{0:08X}\
             {0:08X}{0:08X}{path_size:08X}{0:08X}",
            0, 1
        );
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(path);
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(bytes);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Unpacks an archive made by [`Archive`] below `root`. Files that exist stay as they are.
pub fn unpack(archive: &[u8], root: &Path) -> io::Result<()> {
    let mut rest = archive;
    while let Some(entry) = Entry::next(&mut rest)? {
        match entry.create(&root.join(entry.path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?,
        }
    }
    Ok(())
}

/// One entry of an archive.
pub struct Entry<'a> {
    /// Its path below the root, without `..`.
    pub path: &'a Path,
    mode: u32,
    bytes: &'a [u8],
}

impl<'a> Entry<'a> {
    /// The length of an entry's header, bytes.
    const HEADER: usize = 110;

    /// Takes the first entry off `archive`; none at its end. An error where the archive is not
    /// complete, or the path is absolute or has a `..`.
    pub fn next(archive: &mut &'a [u8]) -> io::Result<Option<Entry<'a>>> {
        let entry = Entry::take(archive).ok_or(io::ErrorKind::InvalidData)?;
        if entry.path == Path::new(END) {
            return Ok(None);
        }
        if entry.path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(Some(entry));
        }
        let why = format!("the path {} leads out of the archive", entry.path.display());
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// Takes the first entry off `archive`; none where it is not complete.
    fn take(archive: &mut &'a [u8]) -> Option<Entry<'a>> {
        let header = std::str::from_utf8(archive.get(..Self::HEADER)?).ok()?;
        let field = |nth: usize| {
            let at = "070701".len() + 8 * nth;
            u32::from_str_radix(header.get(at..at + 8)?, 16).ok()
        };
        let (mode, size, path_size) = (field(1)?, field(6)? as usize, field(11)? as usize);
        let path_end = Self::HEADER + path_size;
        let path = archive.get(Self::HEADER..path_end.checked_sub(1)?)?;
        let start = path_end.next_multiple_of(4);
        let bytes = archive.get(start..start + size)?;
        *archive = archive.get((start + size).next_multiple_of(4)..)?;
        Some(Entry { path: Path::new(OsStr::from_bytes(path)), mode, bytes })
    }

    fn create(&self, place: &Path) -> io::Result<()> {
        match self.mode & KIND {
            FOLDER => fs::create_dir(place),
            LINK => symlink(OsStr::from_bytes(self.bytes), place),
            _ => {
                let mut new = File::options();
                let new = new.write(true).create_new(true).mode(self.mode & 0o7777);
                new.open(place)?.write_all(self.bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::newc::Reader;
    use latlab_sys::process;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Stdio;

    /// Path, mode and contents.
    type Entry = (String, u32, Vec<u8>);

    /// The entries that another reader of the format finds, in order.
    fn read(archive: &[u8]) -> Vec<Entry> {
        let (mut entries, mut rest) = (Vec::new(), archive);
        loop {
            let reader = Reader::new(rest).unwrap();
            let entry = reader.entry();
            if entry.is_trailer() {
                break;
            }
            assert_eq!((entry.uid(), entry.gid(), entry.mtime(), entry.nlink()), (0, 0, 0, 1));
            assert_eq!(entry.ino() as usize, entries.len() + 1);
            let (path, mode, mut bytes) = (entry.name().to_owned(), entry.mode(), Vec::new());
            rest = reader.to_writer(&mut bytes).unwrap();
            entries.push((path, mode, bytes));
        }
        entries
    }

    fn small() -> Vec<u8> {
        let mut archive = Archive::new();
        archive.file("/init", 0o755, b"#!/bin/sh\n");
        archive.link("/bin", "usr/bin");
        archive.file("/bin/true", 0o755, b"");
        archive.folder("/dev/");
        archive.file("./init", 0o644, b"another");
        archive.finish()
    }

    #[test]
    fn archive_adds_each_parent_folder_once_and_first() {
        let entry =
            |path: &str, mode, bytes: &[u8]| -> Entry { (path.to_owned(), mode, bytes.to_owned()) };
        let expected = [
            entry("init", 0o100_755, b"#!/bin/sh\n"),
            entry("bin", 0o120_777, b"usr/bin"),
            entry("bin/true", 0o100_755, b""),
            entry("dev", 0o040_755, b""),
        ];
        assert_eq!(read(&small()), expected);
        assert_eq!(small(), small());
    }

    #[test]
    fn archive_is_listed_by_cpio() {
        let mut cpio = process::command("cpio");
        let cpio = cpio.args(["--list", "--verbose", "--numeric-uid-gid", "--quiet"]);
        cpio.env("TZ", "UTC").env("LC_ALL", "C");
        let started = cpio.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = started.spawn().expect("cpio is installed: tools/need cpio=cpio");
        child.stdin.take().unwrap().write_all(&small()).unwrap();
        let said = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stderr), "");
        let listed = String::from_utf8(said.stdout).unwrap();
        let lines = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let lines: Vec<String> = lines.map(|words| words.join(" ")).collect();
        assert_eq!(
            lines,
            [
                "-rwxr-xr-x 1 0 0 10 Jan 1 1970 init",
                "lrwxrwxrwx 1 0 0 7 Jan 1 1970 bin -> usr/bin",
                "-rwxr-xr-x 1 0 0 0 Jan 1 1970 bin/true",
                "drwxr-xr-x 1 0 0 0 Jan 1 1970 dev",
            ]
        );
    }

    #[test]
    fn unpack_makes_folders_links_and_files_and_keeps_those_that_exist() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        latlab_sys::file::write_atomically(&root.join("init"), b"kept").unwrap();
        unpack(&small(), root).unwrap();
        assert_eq!(fs::read(root.join("init")).unwrap(), b"kept");
        assert_eq!(fs::read_link(root.join("bin")).unwrap(), Path::new("usr/bin"));
        let mode = fs::metadata(root.join("usr/bin/true")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        assert!(root.join("dev").is_dir());
        for end in [0, 50, small().len() - 130] {
            let cut = unpack(&small()[..end], root).unwrap_err();
            assert_eq!(cut.kind(), io::ErrorKind::InvalidData, "{end}");
        }
    }

    #[test]
    fn unpack_refuses_paths_that_lead_out_of_the_root() {
        for path in ["/init", "../init", "etc/../../init"] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("root");
            fs::create_dir_all(root.join("etc")).unwrap();
            let mut archive = Archive::new();
            archive.write(1, Path::new(path), FILE | 0o644, b"text");
            let error = unpack(&archive.finish(), &root).unwrap_err();
            assert!(error.to_string().contains("leads out"), "{path}: {error}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{path}");
        }
    }

    proptest! {
        #[test]
        fn archive_returns_every_packed_file(
            files in prop::collection::btree_map("[a-c]{1,3}(/[d-f]{1,5}){0,2}/[g-z]{1,9}",
                prop::collection::vec(any::<u8>(), 0..99), 0..20)
        ) {
            let mut archive = Archive::new();
            for (path, bytes) in &files {
                archive.file(path, 0o640, bytes);
            }
            let bytes = archive.finish();
            prop_assert_eq!(bytes.len() % 4, 0);
            let entries = read(&bytes);
            for (nth, (path, ..)) in entries.iter().enumerate() {
                let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                let there = entries[..nth].iter().any(|(path, ..)| path == parent);
                prop_assert!(parent.is_empty() || there, "{} comes before its folder", path);
            }
            let back = entries.into_iter().filter(|(_, mode, ..)| *mode == 0o100_640);
            let back: BTreeMap<_, _> = back.map(|(path, _, bytes)| (path, bytes)).collect();
            prop_assert_eq!(&back, &files);
            let root = tempfile::tempdir().unwrap();
            unpack(&bytes, root.path()).unwrap();
            for (path, bytes) in &files {
                prop_assert_eq!(&fs::read(root.path().join(path)).unwrap(), bytes);
            }
        }
    }
}
