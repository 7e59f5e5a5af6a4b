//! execve(2): becoming another program.

use super::{Call, Stage};
use crate::registry::About;
use crate::window::Window;
use latlab_sys::process::Itself;
use std::io;

/// A child becomes another program, which ends at once, and is waited for.
///
/// In the window: execve(2) of latlab itself, a static program, the way from its first instruction
/// to its main function and to its end, and waitpid(2). The child is forked before.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exec {}

impl Call for Exec {
    const ABOUT: About = About { name: "exec", summary: "become another program" };

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(Program(Itself::for_nothing()?)))
    }
}

struct Program(Itself);

impl Stage for Program {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let child = window.single().fork(|| {
            let failed = match window.enter() {
                Ok(()) => self.0.become_it(),
                Err(failed) => failed,
            };
            // Without a word: the parent hears that it failed.
            std::panic::resume_unwind(Box::new(failed));
        })?;
        child.wait()?;
        window.leave();
        Ok(())
    }
}
