//! write(2): writing a file.

use super::store::Store;
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Writes data to an empty file: the kernel allocates its pages and copies the data.
///
/// In the window: one write(2). The data of a file on a disk stays in the page cache.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Write {
    #[command(flatten)]
    #[serde(flatten)]
    store: Store,
}

impl Describe for Write {
    const ABOUT: About = About { name: "write", summary: "write data to an empty file" };
}

impl Call for Write {
    fn folder(&self) -> Option<&Path> {
        self.store.folder()
    }

    fn check(&self) -> Result<()> {
        self.store.check(Self::ABOUT.name)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(WriteStage { file: self.store.empty()?, content: self.store.content() }))
    }
}

struct WriteStage {
    file: File,
    content: Vec<u8>,
}

impl Stage for WriteStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        window.enter()?;
        let written = self.file.write(&self.content);
        window.leave();
        if written? == self.content.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}
