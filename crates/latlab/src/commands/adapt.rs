//! `latlab adapt`: have mechanisms adapt the machine to who runs on it.

mod status;

use crate::adapt::{self, Daemon, LogThread, Options};
use crate::failure::{Failure, Result, failed};
use crate::format::{self, metrics};
use crate::mechanism;
use latlab_core::mechanism::configuration::{self, Configuration};
use latlab_core::time::Nanos;
use latlab_sys::guard::Guard;
use latlab_sys::root::Root;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::{clock, peer, process};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab adapt --dry-run                       which knobs would be turned here?
  latlab adapt                                 adapt until Ctrl-C
  latlab adapt status                          what is turned now, and why? (in another terminal)
  latlab adapt --mechanisms suppress --for 10s
  latlab adapt --log adapt.log --metrics 127.0.0.1:9464
  latlab adapt --replay adapt.log              would it be decided so again?
  latlab adapt --restore                       after a kill -9";

/// Adapt the machine to who runs on it, until Ctrl-C
///
/// Mechanisms turn knobs of an ordinary kernel so that real-time tasks are served as before and
/// ordinary ones get more done (latlab list mechanisms). Every decision is said with its reason.
/// Whatever is turned is written down first, and given back at the end: on Ctrl-C and on a request
/// to terminate, and by the next latlab after a SIGKILL. A knob that somebody else turns meanwhile
/// is left alone.
///
/// Programs say which devices they need by `latlab exec --irq-group`, or at the socket
/// /run/latlab/adapt.sock. Who may, how far adapting goes, and which devices belong together is in
/// /etc/latlab/adapt.toml, or in the file of --config (latlab generate adapt.toml prints one).
///
/// Exit: 0; 1 where --replay decides otherwise; 2 where another latlab adapts this machine, this one
/// fails, or --restore can't give everything back; 3 where nothing can be done here.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Adapt {
    #[command(subcommand)]
    what: Option<What>,
    /// Say which knobs would be turned from what to what, and change nothing
    #[arg(long, conflicts_with_all = ["log", "metrics", "time"])]
    dry_run: bool,
    /// The mechanisms (see: latlab list mechanisms) [default: all]
    #[arg(long, value_name = "NAME,…", default_value = "", hide_default_value = true, value_parser = mechanisms_or_all)]
    mechanisms: Mechanisms,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    time: Option<Nanos>,
    /// The configuration [default: /etc/latlab/adapt.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Serve metrics for Prometheus here, on this machine only, as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = configuration::loopback)]
    metrics: Option<SocketAddr>,
    /// Add to this file what is observed and decided, a line of JSON each
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Decide anew upon what was observed in a file of --log, and say whether it comes to the same
    #[arg(long, value_name = "FILE", exclusive = true)]
    replay: Option<PathBuf>,
    /// Give back what a latlab that was killed has left turned
    #[arg(long, exclusive = true)]
    restore: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Status(status::Show),
}

/// Mechanisms as the user names them.
#[derive(Clone, Debug)]
pub(super) struct Mechanisms(pub(super) Vec<String>);

/// Reads names with commas between them; none means all.
pub(super) fn mechanisms(text: &str) -> std::result::Result<Mechanisms, String> {
    mechanism::names(text).map(Mechanisms)
}

/// The same; without names, what programs may ask for is among them.
fn mechanisms_or_all(text: &str) -> std::result::Result<Mechanisms, String> {
    if text.is_empty() { Ok(Mechanisms(mechanism::all())) } else { mechanisms(text) }
}

/// A wait that is as good as endless.
const LONG: Nanos = Nanos::from_secs(3600);

/// Where the configuration is looked for.
const CONFIGURATION: &str = "/etc/latlab/adapt.toml";

impl Adapt {
    pub(super) fn run(&self) -> Result<()> {
        if let Some(What::Status(show)) = &self.what {
            return show.run();
        }
        if let Some(log) = &self.replay {
            return match adapt::replay(log) {
                Err(Failure::Worse(why)) => Err(Failure::Worse(format::printable(&why))),
                replayed => format::put(&replayed?),
            };
        }
        if self.restore {
            return restore();
        }
        let Mechanisms(names) = &self.mechanisms;
        let text = self.configuration()?;
        let configuration = self.told(&text)?;
        if self.dry_run {
            return format::put(&adapt::dry_run(names, &configuration)?);
        }
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        // Dropped last: the last messages are still written.
        let log_thread = LogThread::start(say)?;
        let logger = log_thread.logger();
        for mended in Guard::mend(&Root::default()) {
            logger.log(&mended);
        }
        let daemon = Daemon::start(Options {
            names,
            configuration: &configuration,
            text: &text,
            log: self.log.as_deref(),
            metrics: metrics::page,
            logger: &logger,
        })?;
        logger.log(&format!("{} at work; Ctrl-C ends it", names.join(" and ")));
        self.wait(&signals, &daemon);
        if daemon.is_at_work() {
            return Ok(());
        }
        let why = "what decides has failed, which is a fault of latlab: what was turned is given \
                   back, and nothing is adapted any more";
        Err(Failure::Failed(why.to_owned()))
    }

    /// The text of the configuration; none where nobody has written one.
    fn configuration(&self) -> Result<String> {
        let path = self.config.as_deref().unwrap_or(Path::new(CONFIGURATION));
        if self.config.is_none() && !path.exists() {
            return Ok(String::new());
        }
        std::fs::read_to_string(path).map_err(|e| failed(&path.display().to_string(), e))
    }

    /// What it says, with what was said on the command line.
    fn told(&self, text: &str) -> Result<Configuration> {
        let path = self.config.as_deref().unwrap_or(Path::new(CONFIGURATION)).display();
        let mut told =
            Configuration::read(text).map_err(|why| Failure::Failed(format!("{path}, {why}")))?;
        if let Some(group) = &told.allow
            && !peer::has_group(&Root::default(), group)
        {
            return Err(Failure::Failed(format!(
                "{path}: allow names the group {group}, which /etc/group does not have"
            )));
        }
        told.metrics = self.metrics.or(told.metrics);
        Ok(told)
    }

    /// Until the time is up, somebody asks for the end, or nothing is at work any more.
    fn wait(&self, signals: &Signals, daemon: &Daemon) {
        let end = self.time.map(|time| clock::now() + time);
        while daemon.is_at_work() {
            let left = end.map_or(LONG, |end| end - clock::now());
            if left == Nanos(0) || signals.wait(left) == Event::End {
                return;
            }
        }
    }
}

/// Says a sentence in which there are names that programs have given themselves.
fn say(sentence: &str) {
    format::say(&format::printable(sentence));
}

fn restore() -> Result<()> {
    if !process::is_root() {
        let why = "what was left turned can be given back by root alone: run latlab as root";
        return Err(Failure::Unsupported(why.to_owned()));
    }
    let mended = Guard::mend_all(&Root::default());
    if mended.said.is_empty() {
        return format::put("nothing was left turned\n");
    }
    format::put(&(mended.said.join("\n") + "\n"))?;
    if mended.complete {
        return Ok(());
    }
    let why = "not everything could be given back: see above, remove the reason and try again";
    Err(Failure::Failed(why.to_owned()))
}
