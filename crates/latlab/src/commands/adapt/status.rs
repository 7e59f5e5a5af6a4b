//! `latlab adapt status`: what the daemon has turned, and why.

use crate::adapt;
use crate::failure::{Failure, Result, failed};
use crate::format::{self, adapting};
use latlab_core::time::Nanos;
use latlab_sys::signal::{Event, Signals};
use std::io::IsTerminal as _;

const EXAMPLES: &str = "\
Examples:
  latlab adapt status
  latlab adapt status --watch
  latlab adapt status --json | jq .changes";

/// Show what the latlab that adapts this machine has turned, and why
///
/// What was turned, from what, why, and for how long; which mechanisms are at work, in which mode;
/// how many real-time tasks there are; who has asked for which devices; and what it costs. Root may
/// ask, and whom the configuration allows to.
///
/// Exit: 0; 3 where no latlab adapts this machine, or it may not be asked.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// As JSON; all times are nanoseconds, those of one clock that only goes on (at, began, since)
    #[arg(long, conflicts_with = "watch")]
    json: bool,
    /// Show it anew each second, until Ctrl-C
    #[arg(long)]
    watch: bool,
}

const PERIOD: Nanos = Nanos::from_secs(1);

impl Show {
    pub(super) fn run(&self) -> Result<()> {
        if self.watch {
            return watch();
        }
        let status = adapt::status()?;
        if self.json {
            let text = serde_json::to_string_pretty(&status).expect("a status is plain data");
            return format::put(&(text + "\n"));
        }
        format::put(&adapting::text(&status))
    }
}

fn watch() -> Result<()> {
    if !std::io::stdout().is_terminal() {
        let why = "--watch draws on a terminal: leave it out to have the status once";
        return Err(Failure::Failed(why.to_owned()));
    }
    let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
    loop {
        format::put(&adapting::screen(&adapt::status()?))?;
        if signals.wait(PERIOD) == Event::End {
            return Ok(());
        }
    }
}
