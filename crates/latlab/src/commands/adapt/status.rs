//! `latlab adapt status`: shows the state of the daemon.

use latlab_adapt as adapt;
use latlab_core::time::Nanos;
use latlab_format::width::Width;
use latlab_format::{self as format, adapting};
use latlab_part::failure::{Context as _, Failure, Result};
use latlab_sys::signal::{Event, Signals};
use std::io::IsTerminal as _;

const EXAMPLES: &str = "\
Examples:
  latlab adapt status
  latlab adapt status --watch
  latlab adapt status --json | jq .changes";

/// Show the knobs that the running latlab adapt has set, and why
///
/// Shows each changed knob with its old value, the reason and the time since; the mechanisms and
/// their mode; the number of real-time tasks; the device groups in use; and the overhead. Only
/// root and the group in the configuration may do so.
///
/// Exit codes: 0 success; 2 failure; 3 no latlab adapts this machine, or access is denied.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// Print JSON; times are in nanoseconds; at, began and since are CLOCK_MONOTONIC times
    #[arg(long, conflicts_with = "watch")]
    json: bool,
    /// Refresh every second, until Ctrl-C
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
        format::show(&adapting::text(&status, Width::of_stdout()))
    }
}

fn watch() -> Result<()> {
    if !std::io::stdout().is_terminal() {
        let why = "--watch needs a terminal: leave it out to print the status once";
        return Err(Failure::failed(why));
    }
    let signals = Signals::block().context("signals can't be blocked")?;
    loop {
        format::put_styled(&adapting::screen(&adapt::status()?, Width::of_stdout()))?;
        if signals.wait(PERIOD) == Event::End {
            return Ok(());
        }
    }
}
