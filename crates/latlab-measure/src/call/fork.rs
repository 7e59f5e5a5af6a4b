//! fork(2): creating a process.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::part::{About, Describe};
use std::io;

/// Forks a child that exits at once, and waits for it.
///
/// In the window: fork(2), the child's exit, and waitpid(2).
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Fork {}

impl Describe for Fork {
    const ABOUT: About = About { name: "fork", summary: "fork a child that exits at once" };
}

impl Call for Fork {
    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Fork {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        window.enter()?;
        let child = window.single().fork(|| {})?;
        child.wait()?;
        window.leave();
        Ok(())
    }
}
