//! Files that are begun before the work whose results they get.

use latlab_core::record::Record;
use latlab_format as format;
use latlab_part::failure::{Failure, Result, failed};
use latlab_sys::file::{self, Pending};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Bytes reserved for a file before the work starts.
const RESERVED: u64 = 1 << 20;

/// How each file of test cases begins, and no record.
const XML: &[u8] = b"<";

/// A file that gets the results of a command. A path that can't be written fails at once, and not
/// after hours of work.
pub(super) struct Reserved {
    file: Pending,
    path: PathBuf,
}

impl Reserved {
    /// Begins the file.
    pub(super) fn begin(path: &Path) -> Result<Reserved> {
        let file = Pending::begin(path, RESERVED).map_err(|e| failed_at(path, e))?;
        Ok(Reserved { file, path: path.to_owned() })
    }

    /// Begins a file of test cases, and removes those of an earlier command: if this one fails, a CI
    /// system would read them. Refuses to overwrite anything else, such as a record.
    pub(super) fn begin_test_cases(path: &Path) -> Result<Reserved> {
        if path.is_file() {
            check_is_xml(path)?;
        }
        let reserved = Reserved::begin(path)?;
        // The target of a link such as /dev/stdout is kept.
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            std::fs::remove_file(path).map_err(|e| failed_at(path, e))?;
        }
        Ok(reserved)
    }

    /// Writes the content.
    pub(super) fn write(self, content: &str) -> Result<()> {
        self.file.finish(content.as_bytes()).map_err(|e| failed_at(&self.path, e))
    }

    /// Writes a record. If that fails, writes it to the folder for temporary files or to stdout.
    pub(super) fn write_record(self, record: &Record) -> Result<()> {
        let bytes = record.to_json().into_bytes();
        let Err(error) = self.file.finish(&bytes) else {
            return Ok(());
        };
        let fallback = if let Ok(substitute) = substitute(&std::env::temp_dir(), &bytes) {
            format!("it is in {}", substitute.display())
        } else {
            format::put(&record.to_json())?;
            "it was printed on stdout".to_owned()
        };
        let path = self.path.display();
        Err(Failure::failed(format!("the record can't be written to {path} ({error}); {fallback}")))
    }
}

/// Writes a record to a new file in the folder for temporary files, and returns its path.
fn substitute(folder: &Path, record: &[u8]) -> io::Result<PathBuf> {
    file::write_new(folder, "latlab-", ".json", record)
}

fn check_is_xml(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(|e| failed_at(path, e))?;
    file.take(XML.len() as u64).read_to_end(&mut start).map_err(|e| failed_at(path, e))?;
    if start.is_empty() || start == XML {
        return Ok(());
    }
    Err(failed_at(path, "this is no XML and would be overwritten: name another file"))
}

fn failed_at(path: &Path, error: impl std::fmt::Display) -> Failure {
    failed(&path.display().to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Another user can put links in place of the names that the process could give the file.
    #[test]
    fn substitute_follows_no_link_of_another_user() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        File::create(&victim).unwrap();
        let named_by_process = format!("latlab-{}.json", std::process::id());
        symlink(&victim, folder.path().join(named_by_process)).unwrap();
        let write = || substitute(folder.path(), b"a record").unwrap();
        let (first, second) = (write(), write());
        assert_ne!(first, second);
        assert_eq!(std::fs::read(&first).unwrap(), b"a record");
        assert_eq!(first.extension().unwrap(), "json");
        assert_eq!(std::fs::read(&victim).unwrap(), b"");
    }
}
