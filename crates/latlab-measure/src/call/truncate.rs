//! ftruncate(2): truncating a file.

use super::store::Store;
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Truncates a file in memory: the kernel frees all of its pages.
///
/// In the window: ftruncate(2) to 0 bytes.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Truncate {
    #[command(flatten)]
    #[serde(flatten)]
    store: Store,
}

impl Describe for Truncate {
    const ABOUT: About = About { name: "truncate", summary: "truncate a file in memory" };
}

impl Call for Truncate {
    fn folder(&self) -> Option<&Path> {
        self.store.folder()
    }

    fn check(&self) -> Result<()> {
        self.store.check(Self::ABOUT.name)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(TruncateStage { file: self.store.empty()?, content: self.store.content() }))
    }
}

struct TruncateStage {
    file: File,
    content: Vec<u8>,
}

impl Stage for TruncateStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.content)?;
        window.enter()?;
        let truncated = self.file.set_len(0);
        window.leave();
        truncated
    }
}
