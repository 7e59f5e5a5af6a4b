//! sync(2): writing all dirty data to the disks.

use super::store::{check_folder, size};
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_core::size::Bytes;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use latlab_sys::file;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Writes the dirty data of all file systems to the disks, after a file was written.
///
/// In the window: sync(2), which mostly waits for the disk. The dirty data of other programs is
/// written as well.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Sync {
    /// Bytes written to a file before the window
    #[arg(long, default_value = "1MiB", value_parser = size)]
    size: Bytes,
    /// Folder of that file, on a disk
    #[arg(long, default_value = "/var/tmp")]
    dir: PathBuf,
}

impl Describe for Sync {
    const ABOUT: About = About { name: "sync", summary: "write all dirty data to the disks" };
}

impl Call for Sync {
    fn folder(&self) -> Option<&Path> {
        Some(&self.dir)
    }

    fn check(&self) -> Result<()> {
        check_folder(Self::ABOUT.name, &self.dir, self.size)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        let content = vec![b'-'; usize::try_from(self.size.0).unwrap_or(1)];
        Ok(Box::new(SyncStage { file: file::scratch(&self.dir)?, content }))
    }
}

struct SyncStage {
    file: File,
    content: Vec<u8>,
}

impl Stage for SyncStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.content)?;
        window.enter()?;
        file::sync_all();
        window.leave();
        Ok(())
    }
}
