//! exit(2): the end of a process.

use super::anonymous::Anonymous;
use super::{Call, Stage};
use crate::failure::Result;
use crate::registry::About;
use crate::window::Window;
use std::io;

/// Ends a child that has touched memory, and waits for it: the kernel gives all of it back.
///
/// In the window: the child's _exit(2), and waitpid(2) until its end. The memory is touched
/// before.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exit {
    #[command(flatten)]
    #[serde(flatten)]
    memory: Anonymous,
}

impl Call for Exit {
    const ABOUT: About = About { name: "exit", summary: "end a process that has touched memory" };

    fn check(&self) -> Result<()> {
        self.memory.check(Self::ABOUT.name)
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(self.clone()))
    }
}

impl Stage for Exit {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let child = window.single().fork(|| {
            let memory = self.memory.touched();
            let entered = memory.as_ref().is_ok_and(|_| window.enter().is_ok());
            // It is the end of the process that gives the memory back.
            std::mem::forget(memory);
            if !entered {
                // Without a word: the parent hears that it failed.
                std::panic::resume_unwind(Box::new(()));
            }
        })?;
        child.wait()?;
        window.leave();
        Ok(())
    }
}
