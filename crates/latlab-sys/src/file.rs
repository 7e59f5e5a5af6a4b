//! Writing results so that a reader sees the whole file or none of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file that could not be written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct WriteError {
    /// The file that was asked for.
    pub path: PathBuf,
    /// What the kernel said.
    pub source: io::Error,
}

/// Puts `bytes` into the file `path`, all of them or none: they are written beside it, brought to
/// the disk, and take its name last. What is not a plain file, as `/dev/stdout`, is written to.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let written = match fs::metadata(path) {
        Ok(there) if !there.is_file() => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(bytes)),
        // A symbolic link stays one: what it points to is replaced.
        Ok(_) => fs::canonicalize(path).and_then(|target| replace(&target, bytes)),
        Err(_) => replace(path, bytes),
    };
    written.map_err(|source| WriteError {
        path: path.to_owned(),
        source,
    })
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let beside = directory.join(format!(
        ".{}.{}.tmp",
        name.to_string_lossy(),
        std::process::id()
    ));
    let result = fill(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if result.is_err() {
        // The first error is the one to tell; there may be nothing to remove.
        let _ = fs::remove_file(&beside);
    }
    result?;
    File::open(directory)?.sync_all()
}

fn fill(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.json");
        write_atomically(&path, b"first").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(directory.path()), ["record.json"]);
    }

    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        write_atomically(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        write_atomically(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_failure_names_the_file_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("no/such/place.html");
        let error = write_atomically(&path, b"text").unwrap_err().to_string();
        assert!(
            error.contains("place.html: No such file or directory"),
            "{error}"
        );
        let taken = directory.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write_atomically(&taken, b"text").is_err());
        assert_eq!(names(directory.path()), ["taken"]);
    }
}
