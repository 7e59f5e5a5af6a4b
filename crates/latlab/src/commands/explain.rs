//! `latlab explain`: measure, and say what made the worst samples late.

use super::run::Run;
use super::scan::Scan;
use crate::failure::Result;

/// Measure, and say what made the worst samples late
///
/// In the laboratory (--on lab:PROFILE) the run is made twice. It is the same both times, but for
/// the second time every instruction is watched: the path from the timer's expiry to the program,
/// function by function, and who held interrupts or preemption off. Watching takes no time of the
/// guest.
#[derive(Debug, clap::Args)]
pub(super) struct Explain {
    #[command(flatten)]
    run: Run,
    #[command(subcommand)]
    what: Option<What>,
}

/// What is explained instead of probes.
#[derive(Debug, clap::Subcommand)]
enum What {
    Scan(Scan),
}

impl Explain {
    pub(super) fn run(&self) -> Result<()> {
        match &self.what {
            None => self.run.explain(),
            Some(What::Scan(scan)) => scan.explain(self.run.only_where()?),
        }
    }
}
