//! Programs: children become another program, which ends at once.

use super::{Bench, Load, Place};
use crate::registry::About;
use latlab_sys::process::Itself;
use std::io;

/// Forks a child that becomes another program (execve), which ends at once, and waits for it, again
/// and again, one worker on each CPU.
///
/// What shells and make do all day, beside the fork load of Abeni et al. 2002: memory is unmapped, a
/// file mapped, a stack built. The program is latlab itself, told to do nothing. Its work is counted
/// in programs.
#[derive(Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Exec {
    #[command(flatten)]
    #[serde(flatten)]
    place: Place,
}

impl Load for Exec {
    const ABOUT: About = About { name: "exec", summary: "start programs that end at once" };
    const UNIT: &'static str = "programs";

    fn place(&self) -> &Place {
        &self.place
    }

    fn work(&self, bench: &Bench) -> io::Result<()> {
        let program = Itself::for_nothing()?;
        bench.ready();
        while bench.running() {
            let become_it = || {
                // Without a word: the parent hears that it failed.
                std::panic::resume_unwind(Box::new(program.become_it()));
            };
            bench.single().fork(become_it)?.wait()?;
            bench.done(1);
        }
        Ok(())
    }
}
