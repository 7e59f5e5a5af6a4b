//! `latlab adapt`: adapts the machine to its tasks, as a daemon.

mod status;

use super::complete;
use super::rights;
use super::worse;
use latlab_adapt::mechanism;
use latlab_adapt::{self as adapt, Daemon, LogThread, Options};
use latlab_core::time::Nanos;
use latlab_format::{self as format, metrics};
use latlab_mechanism::configuration::{self, Configuration};
use latlab_part::failure::{Context as _, Failure, FailureKind, Result};
use latlab_sys::capabilities::Purpose;
use latlab_sys::guard::{Guard, Recovery};
use latlab_sys::root::Root;
use latlab_sys::signal::{Event, Signals};
use latlab_sys::{clock, file, peer, process};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  latlab adapt --dry-run                       show which knobs would be set
  latlab adapt                                 adapt until Ctrl-C
  latlab adapt status                          show the changed knobs (in another terminal)
  latlab adapt --mechanisms suppress --for 10s
  latlab adapt --log adapt.log --metrics 127.0.0.1:9464
  latlab adapt --replay adapt.log              repeat the decisions of a log
  latlab adapt --restore                       restore knobs after a kill -9";

/// Adapt the machine to the tasks that run on it, until Ctrl-C
///
/// Mechanisms (latlab list mechanisms) set knobs: kernel settings and priorities of IRQ threads.
/// They raise SCHED_OTHER throughput and avoid priority inversion for real-time tasks. Decisions
/// are printed with reasons. A journal records each knob before it is set. All knobs are restored
/// at the end, on Ctrl-C or SIGTERM; after a SIGKILL the next latlab restores them. A knob that
/// something else changes meanwhile is left alone.
///
/// Programs request that the interrupts of their devices are prioritised with `latlab exec
/// --irq-group`, or at the socket /run/latlab/adapt.sock. The configuration states who may do so,
/// which devices form a group, and the highest priority of an IRQ thread (latlab generate
/// adapt.toml prints the default).
///
/// Exit codes: 0 success; 1 --replay decides differently; 2 another latlab adapts this machine,
/// this one fails, or knobs are not restored after --restore; 3 this machine can't be adapted.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Adapt {
    #[command(subcommand)]
    command: Option<AdaptCommand>,
    /// Only show which knobs would be set, with old and new values
    #[arg(long, conflicts_with_all = ["log", "metrics", "time"])]
    dry_run: bool,
    /// Mechanisms to use (see: latlab list mechanisms) [default: all but demote]
    #[arg(long, value_name = "NAME,…", default_value = "", hide_default_value = true, value_parser = mechanisms_of_daemon, add = complete::mechanisms())]
    mechanisms: Mechanisms,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = super::positive)]
    time: Option<Nanos>,
    /// Configuration file [default: /etc/latlab/adapt.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Serve metrics for Prometheus at this loopback address, e.g. 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = configuration::loopback)]
    metrics: Option<SocketAddr>,
    /// Append observations and decisions to this file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Replay the observations in a file written by --log, and check that the decisions are the
    /// same
    #[arg(long, value_name = "FILE", exclusive = true)]
    replay: Option<PathBuf>,
    /// Restore the knobs that a killed latlab has left set
    #[arg(long, exclusive = true)]
    restore: bool,
}

#[derive(Debug, clap::Subcommand)]
enum AdaptCommand {
    Status(status::Show),
}

/// Names of mechanisms.
#[derive(Clone, Debug)]
pub(super) struct Mechanisms(pub(super) Vec<String>);

/// Reads names separated by commas. Without names, returns the mechanisms of a measurement.
pub(super) fn mechanisms(text: &str) -> std::result::Result<Mechanisms, String> {
    mechanism::names(text).map(Mechanisms)
}

/// Reads names separated by commas. Without names, returns the mechanisms of the daemon.
fn mechanisms_of_daemon(text: &str) -> std::result::Result<Mechanisms, String> {
    if text.is_empty() { Ok(Mechanisms(mechanism::of_daemon())) } else { mechanisms(text) }
}

/// Longest single wait for signals where no end is set.
const LONG_WAIT: Nanos = Nanos::from_secs(3600);

/// The default path of the configuration.
const CONFIGURATION: &str = "/etc/latlab/adapt.toml";

impl Adapt {
    /// Whether it only asks a daemon or reads a log.
    pub(super) fn only_reads(&self) -> bool {
        self.command.is_some() || self.replay.is_some()
    }

    pub(super) fn run(&self) -> Result<()> {
        if let Some(AdaptCommand::Status(show)) = &self.command {
            return show.run();
        }
        if let Some(log) = &self.replay {
            return match adapt::replay(log) {
                Err(failure) if failure.kind == FailureKind::Worse => {
                    Err(Failure::worse(format::printable(&failure.text)))
                }
                replayed => format::show(&replayed?),
            };
        }
        if self.restore {
            return restore();
        }
        let Mechanisms(names) = &self.mechanisms;
        let text = self.read_configuration()?;
        let configuration = self.configuration(&text)?;
        if self.dry_run {
            return format::show(&adapt::dry_run(names, &configuration)?);
        }
        let signals = Signals::block().context("signals can't be blocked")?;
        // At once: whatever fails from here on, it was done.
        for mended in Guard::recover(&Root::default()) {
            say(&mended);
        }
        // Before any thread starts. The folder of the log may be another user's.
        match self.log {
            None => rights::keep(&[Purpose::Adapting])?,
            Some(_) => rights::keep(&[Purpose::Adapting, Purpose::Files])?,
        }
        // Dropped last: the last messages are still written.
        let log_thread = LogThread::start(say)?;
        let logger = log_thread.logger();
        let daemon = Daemon::start(Options {
            names,
            configuration: &configuration,
            text: &text,
            log: self.log.as_deref(),
            metrics: metrics::page,
            logger: &logger,
        })?;
        logger.log(&format!("adapting with {}; stop with Ctrl-C", names.join(", ")));
        self.wait(&signals, &daemon);
        let failed = !daemon.is_at_work();
        let why = match (failed, daemon.end()) {
            (false, true) => return Ok(()),
            (true, _) => {
                "the thread that decides has failed, which is a bug in latlab: adapting has \
                 stopped; run `latlab adapt --restore`"
            }
            (false, false) => {
                "not all knobs could be restored: run `latlab adapt --restore` when the causes \
                 above are gone"
            }
        };
        Err(Failure::failed(why))
    }

    /// The text of the configuration; empty where the default file does not exist.
    fn read_configuration(&self) -> Result<String> {
        let path = self.config.as_deref().unwrap_or(Path::new(CONFIGURATION));
        match file::read_text(path) {
            Err(e) if self.config.is_none() && e.kind() == ErrorKind::NotFound => Ok(String::new()),
            text => text.at(path),
        }
    }

    /// Parses the configuration and adds the options of the command line.
    fn configuration(&self, text: &str) -> Result<Configuration> {
        let path = self.config.as_deref().unwrap_or(Path::new(CONFIGURATION)).display();
        let mut configuration =
            Configuration::read(text).map_err(|why| Failure::failed(format!("{path}, {why}")))?;
        if let Some(group) = &configuration.allow
            && !peer::has_group(&Root::default(), group)
        {
            return Err(Failure::failed(format!(
                "{path}: allow names the group {group}, which is not in /etc/group"
            )));
        }
        configuration.metrics = self.metrics.or(configuration.metrics);
        Ok(configuration)
    }

    /// Waits until the time is up, the user asks for the end, or the daemon has stopped.
    fn wait(&self, signals: &Signals, daemon: &Daemon) {
        let end = self.time.map(|time| clock::now() + time);
        while daemon.is_at_work() {
            let left = end.map_or(LONG_WAIT, |end| end - clock::now());
            if left == Nanos(0) || signals.wait(left) == Event::End {
                return;
            }
        }
    }
}

/// Prints a sentence that may contain names chosen by programs.
fn say(sentence: &str) {
    format::say(&format::printable(sentence));
}

fn restore() -> Result<()> {
    if !process::is_root() {
        let why = "only root can restore knobs: run latlab as root";
        return Err(Failure::unsupported(why));
    }
    let Recovery { said, held, complete } = Guard::recover_all(&Root::default());
    let sentences = [said, held].concat();
    if sentences.is_empty() {
        return format::show("no knob needs to be restored\n");
    }
    let shown = format::show(&(sentences.join("\n") + "\n"));
    let incomplete = || {
        let why = "not all knobs could be restored: fix the causes above and try again";
        Failure::failed(why)
    };
    worse(if complete { Ok(()) } else { Err(incomplete()) }, shown)
}
