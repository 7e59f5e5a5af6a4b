//! Program load: processes are started by fork and execve.

mod program;

use super::{Load, LoadContext, Place};
use clap::ValueHint;
use latlab_part::failure::Result;
use latlab_part::part::needs::Needs;
use latlab_part::part::{About, Describe};
use latlab_sys::process::SelfExec;
use program::Program;
use std::io;

/// Forks a child that executes a program (execve), which exits at once, and waits for it,
/// repeatedly, one worker on each CPU; or runs a command of yours, as `exec:stress-ng --cpu 2`.
///
/// Without a command it is the work of shells and make, in addition to the fork load of Abeni et
/// al. 2002: the kernel unmaps memory, maps a file, and sets up a stack. The program is latlab
/// itself, which does nothing then, and is called exe. Counts programs.
///
/// A command runs once, on all CPUs of the load together, without a shell, and starts again
/// whenever it ends with exit code 0; processes that it left are killed before. A command that
/// fails in its first 200 ms ends the run; one that fails later ends the load, and the record says
/// so. Its output is discarded, except the last lines of stderr for these messages. When the run
/// ends, or latlab is killed, it gets SIGTERM and a second later SIGKILL, with its process group
/// and all its descendants. Counts the programs that ended. A guest gets the program, its libraries and
/// the files of `--with`, and starts it in `/`; of a shell's command, name the programs by `--with`.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exec {
    /// Command to run, with its arguments: all the text to the end, commas included
    #[arg(long, value_hint = ValueHint::CommandString, value_parser = program::command)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Describe for Exec {
    const ABOUT: About =
        About { name: "exec", summary: "start programs that exit at once, or run a command" };
}

impl Load for Exec {
    fn unit(&self) -> &'static str {
        "programs"
    }

    fn one_worker(&self) -> bool {
        self.command.is_some()
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn needs(&self) -> Needs {
        let words = self.command.iter().filter_map(|command| shlex::split(command));
        Needs { commands: words.collect(), ..Needs::default() }
    }

    fn check(&self, _workers: u64) -> Result<()> {
        self.command.iter().try_for_each(|command| program::check(Self::ABOUT.name, command))
    }

    fn work(&self, context: &LoadContext) -> io::Result<()> {
        match &self.command {
            Some(command) => Program::of(command)?.repeat(context),
            None => start_no_ops(context),
        }
    }
}

/// Starts this program as one that exits at once, repeatedly.
fn start_no_ops(context: &LoadContext) -> io::Result<()> {
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
