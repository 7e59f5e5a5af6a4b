//! stat(2): what the kernel knows of a file.

use super::{Call, Stage};
use crate::failure::{Failure, Result};
use crate::registry::About;
use crate::window::Window;
use std::io;
use std::path::PathBuf;

/// Asks what a file is.
///
/// In the window: statx(2), which finds the file by its name.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Stat {
    /// The file
    #[arg(long, default_value = "/proc/self/exe")]
    path: PathBuf,
}

impl Call for Stat {
    const ABOUT: About = About { name: "stat", summary: "ask what a file is" };

    fn check(&self) -> Result<()> {
        std::fs::metadata(&self.path).map(drop).map_err(|e| {
            let path = self.path.display();
            Failure::Failed(format!("stat: {path} can't be seen ({e}): name another with path="))
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
