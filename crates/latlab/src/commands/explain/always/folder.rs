//! The folder of a flight recorder's records: the oldest make room for new ones.

use latlab_core::explain::always::{Kept, file_name, is_ours, keep};
use latlab_core::record::Record;
use latlab_core::size::Bytes;
use latlab_core::time::Nanos;
use latlab_format as format;
use latlab_part::failure::{Result, failed};
use latlab_sys::file;
use std::path::{Path, PathBuf};

/// The folder, and the records in it, those of earlier runs included.
pub(super) struct Folder {
    path: PathBuf,
    /// Records of earlier runs in the order of their names, then records of this run in the order
    /// of writing.
    records: Vec<Kept>,
    limit: Bytes,
    /// Whether the last record could not be written, which was reported.
    fails: bool,
}

impl Folder {
    /// Opens or creates the folder. Temporary files of killed runs are removed: no other record will
    /// have their name, and they would not count as kept.
    pub(super) fn open(path: &Path, limit: Bytes) -> Result<Folder> {
        let wrong = |e: std::io::Error| failed(&path.display().to_string(), e);
        std::fs::create_dir_all(path).map_err(wrong)?;
        file::remove_abandoned(path, is_ours);
        let kept = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok().filter(|name| is_ours(name))?;
            Some(Kept { name, size: entry.metadata().ok()?.len() })
        };
        let mut records: Vec<Kept> =
            std::fs::read_dir(path).map_err(wrong)?.filter_map(kept).collect();
        records.sort();
        let path = path.to_owned();
        Ok(Folder { path, records, limit, fails: false })
    }

    /// Writes the record of a wake-up at this wall-clock time, and removes the oldest that are too
    /// many. A failure is reported once, and the recording goes on: the disk may have room again.
    pub(super) fn store(&mut self, record: &Record, at: Nanos) -> Option<PathBuf> {
        let sample = record.worst.first()?;
        let name = file_name(at, &sample.probe);
        let path = self.path.join(&name);
        let text = record.to_json();
        let written = file::write_atomically(&path, text.as_bytes());
        if let Err(error) = &written
            && !self.fails
        {
            format::say(&format!("{} can't be written: {error}", path.display()));
        }
        self.fails = written.is_err();
        written.ok()?;
        let new = Kept { name, size: text.len() as u64 };
        for old in keep(&mut self.records, new, self.limit.0) {
            // It may have been removed already.
            let _ = std::fs::remove_file(self.path.join(old.name));
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn folder_loses_temporary_files_of_killed_runs_only() {
        let folder = tempfile::tempdir().unwrap();
        let record = file_name(Nanos(0), "cyclic");
        let abandoned = format!(".{record}.x7Ab2c.tmp");
        let of_another = ".report.html.x7Ab2c.tmp";
        for name in [&record, &abandoned, of_another] {
            File::create(folder.path().join(name)).unwrap();
        }
        let under_way = file::Pending::begin(&folder.path().join(file_name(Nanos(1), "x")), 0);
        let opened = Folder::open(folder.path(), Bytes(1 << 20)).unwrap();
        let kept: Vec<&str> = opened.records.iter().map(|kept| kept.name.as_str()).collect();
        assert_eq!(kept, [&record]);
        assert!(!folder.path().join(abandoned).exists());
        assert!(folder.path().join(of_another).exists());
        under_way.unwrap().finish(b"whole").unwrap();
    }
}
