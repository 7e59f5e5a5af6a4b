//! `latlab adapt`: have mechanisms adapt the machine to who runs on it.

use crate::adapt::{self, Beside};
use crate::failure::{Result, failed};
use crate::{format, mechanism};
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::guard::Guard;
use latlab_sys::root::Root;
use latlab_sys::signal::{Event, Signals};

const EXAMPLES: &str = "\
Examples:
  latlab adapt --dry-run                       which knobs would be turned here?
  latlab adapt                                 adapt until Ctrl-C
  latlab adapt --mechanisms suppress --for 10s";

/// Adapt the machine to who runs on it, until Ctrl-C
///
/// Mechanisms turn knobs of an ordinary kernel so that real-time tasks are served as before and
/// ordinary ones get more done (latlab list mechanisms). Every decision is said with its reason.
/// Whatever is turned is written down first, and given back at the end: on Ctrl-C and on a request
/// to terminate, and by the next latlab after a SIGKILL. A knob that somebody else turns meanwhile
/// is left alone.
///
/// Exit: 0; 2 where another latlab adapts this machine; 3 where nothing can be done here.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Adapt {
    /// Say which knobs would be turned from what to what, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// The mechanisms (see: latlab list mechanisms) [default: all but selective]
    #[arg(long, value_name = "NAME,…", default_value = "", hide_default_value = true, value_parser = mechanisms)]
    mechanisms: Mechanisms,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    time: Option<Nanos>,
}

/// Mechanisms as the user names them.
#[derive(Clone, Debug)]
pub(super) struct Mechanisms(pub(super) Vec<String>);

/// Reads names with commas between them; none means all.
pub(super) fn mechanisms(text: &str) -> std::result::Result<Mechanisms, String> {
    mechanism::names(text).map(Mechanisms)
}

/// A wait that is as good as endless.
const LONG: Nanos = Nanos::from_secs(3600);

impl Adapt {
    pub(super) fn run(&self) -> Result<()> {
        let Mechanisms(names) = &self.mechanisms;
        if self.dry_run {
            return format::put(&adapt::foresee(names, &Configuration::default())?);
        }
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        for mended in Guard::mend(&Root::default()) {
            format::say(&mended);
        }
        let beside = Beside::start(names, format::say)?;
        format::say(&format!("{} at work; Ctrl-C ends it", names.join(" and ")));
        self.wait(&signals);
        drop(beside);
        Ok(())
    }

    /// Until the time is up or somebody asks for the end.
    fn wait(&self, signals: &Signals) {
        let end = self.time.map(|time| clock::now() + time);
        loop {
            let left = end.map_or(LONG, |end| end - clock::now());
            if left == Nanos(0) || signals.wait(left) == Event::End {
                return;
            }
        }
    }
}
