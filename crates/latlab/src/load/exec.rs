//! Program load: processes are started by fork and execve.

use super::{Load, LoadContext, Place};
use crate::part::{About, Describe};
use latlab_sys::process::SelfExec;
use std::io;

/// Forks a child that executes a program (execve), which exits at once, and waits for it,
/// repeatedly, one worker on each CPU.
///
/// The work of shells and make, in addition to the fork load of Abeni et al. 2002: the kernel
/// unmaps memory, maps a file, and sets up a stack. The program is latlab itself, which does
/// nothing then, and is called exe. Counts programs.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exec {
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Exec {
    const ABOUT: About = About { name: "exec", summary: "start programs that exit at once" };
}

impl Load for Exec {
    fn unit(&self) -> &'static str {
        "programs"
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        let program = SelfExec::no_op()?;
        context.ready();
        while context.running() {
            let exec = || {
                // Without a message: the parent gets the exit status.
                std::panic::resume_unwind(Box::new(program.exec()));
            };
            context.single().fork(exec)?.wait()?;
            context.done(1);
        }
        Ok(())
    }
}
