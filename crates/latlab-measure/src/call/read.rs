//! read(2): reading a file in memory.

use super::store::Store;
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Reads a file in memory from its beginning: the kernel copies all of its pages.
///
/// In the window: one read(2). A file on a disk is read from the page cache.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Read {
    #[command(flatten)]
    #[serde(flatten)]
    store: Store,
}

impl Describe for Read {
    const ABOUT: About = About { name: "read", summary: "read a file in memory" };
}

impl Call for Read {
    fn folder(&self) -> Option<&Path> {
        self.store.folder()
    }

    fn check(&self) -> Result<()> {
        self.store.check(Self::ABOUT.name)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(ReadStage { file: self.store.full()?, buffer: self.store.content() }))
    }
}

struct ReadStage {
    file: File,
    buffer: Vec<u8>,
}

impl Stage for ReadStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        window.enter()?;
        let read = self.file.read(&mut self.buffer);
        window.leave();
        if read? == self.buffer.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
