//! execve(2): executing a program.

use super::{Call, Stage};
use crate::call::window::Window;
use latlab_part::part::{About, Describe};
use latlab_sys::process::SelfExec;
use std::io;

/// Executes a program that exits at once, in a child, and waits for it.
///
/// In the window: execve(2) of latlab itself, a static program, its start-up code, its exit, and
/// waitpid(2). The child is forked before the window.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exec {}

impl Describe for Exec {
    const ABOUT: About = About { name: "exec", summary: "execute a program that exits at once" };
}

impl Call for Exec {
    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(ExecStage(SelfExec::no_op()?)))
    }
}

struct ExecStage(SelfExec);

impl Stage for ExecStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let child = window.single().fork(|| {
            let failed = match window.enter() {
                Ok(()) => self.0.exec(),
                Err(failed) => failed,
            };
            // Without a message: the parent gets the exit status.
            std::panic::resume_unwind(Box::new(failed));
        })?;
        child.wait()?;
        window.leave();
        Ok(())
    }
}
