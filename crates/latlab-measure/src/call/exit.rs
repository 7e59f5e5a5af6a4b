//! exit(2): the exit of a process.

use super::anonymous::Anonymous;
use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::failure::Result;
use latlab_part::part::{About, Describe};
use std::io;

/// Ends a child that has touched memory, and waits for it: the kernel frees all of its pages.
///
/// In the window: the child's _exit(2), and waitpid(2) until its end. The memory is touched before
/// the window.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exit {
    #[command(flatten)]
    #[serde(flatten)]
    memory: Anonymous,
}

impl Describe for Exit {
    const ABOUT: About =
        About { name: "exit", summary: "exit of a process that has touched memory" };
}

impl Call for Exit {
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
            // The memory is freed by the exit of the process, not before.
            std::mem::forget(memory);
            if !entered {
                // Without a message: the parent gets the exit status.
                std::panic::resume_unwind(Box::new(()));
            }
        })?;
        child.wait()?;
        window.leave();
        Ok(())
    }
}
