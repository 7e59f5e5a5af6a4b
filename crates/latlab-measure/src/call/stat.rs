//! stat(2): reading the metadata of a file.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::{Failure, Result};
use latlab_part::part::{About, Describe};
use std::io;
use std::path::PathBuf;

/// Reads the metadata of a file.
///
/// In the window: statx(2), which looks the file up by its name.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Stat {
    /// Path of the file
    #[arg(long, default_value = "/proc/self/exe")]
    path: PathBuf,
}

impl Describe for Stat {
    const ABOUT: About = About { name: "stat", summary: "read the metadata of a file" };
}

impl Call for Stat {
    fn check(&self) -> Result<()> {
        std::fs::metadata(&self.path).map(drop).map_err(|e| {
            let path = self.path.display();
            Failure::failed(format!("stat: {path} can't be found ({e}): choose another with path="))
        })
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Stat {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        window.enter()?;
        let found = std::fs::metadata(&self.path);
        window.leave();
        found.map(drop)
    }
}
