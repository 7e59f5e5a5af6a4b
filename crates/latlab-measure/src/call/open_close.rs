//! open(2) and close(2): looking up a file by its name.

use super::{Call, Stage, check_file};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Opens a file and closes it.
///
/// In the window: open(2), read only, and close(2).
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct OpenClose {
    /// Path of the file
    #[arg(long, default_value = "/proc/self/exe")]
    path: PathBuf,
}

impl Describe for OpenClose {
    const ABOUT: About = About { name: "open-close", summary: "open a file and close it" };
}

impl Call for OpenClose {
    fn check(&self) -> Result<()> {
        check_file(Self::ABOUT.name, &self.path, "opened")
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for OpenClose {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        window.enter()?;
        let opened = File::open(&self.path);
        let opened = opened.map(drop);
        window.leave();
        opened
    }
}
