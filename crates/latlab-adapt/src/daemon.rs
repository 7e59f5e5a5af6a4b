//! The daemon of `latlab adapt`: adaptation with a configuration, a socket for requests, metrics
//! and a log.

use super::adapter::DaemonLinks;
use super::control::{Context, Control};
use super::decision_log::DecisionLog;
use super::log_file::PlannedLog;
use super::log_thread::Logger;
use super::mailbox::{Mailbox, RequestReader};
use super::starvation::HeartbeatThreads;
use super::thread::Adapting;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::log::LogHeader;
use latlab_mechanism::status::Status;
use latlab_part::failure::{Result, failed};
use latlab_sys::clock;
use latlab_sys::listener::Listener;
use latlab_sys::root::Root;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

/// Name of the socket and of the claim.
pub(super) const NAME: &str = "adapt";

/// Name of the mechanism that serves requests for device groups.
const SELECTIVE: &str = "selective";

/// Options of a daemon.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Names of the mechanisms.
    pub names: &'a [String],
    /// What the mechanisms may do.
    pub configuration: &'a Configuration,
    /// The text of the configuration, for the log.
    pub text: &'a str,
    /// The file of `--log`.
    pub log: Option<&'a Path>,
    /// Formats metrics.
    pub metrics: fn(&Status) -> String,
    /// Where decisions are written.
    pub logger: &'a Logger,
}

/// A running daemon. Dropping it ends it and restores everything.
#[derive(Debug)]
pub struct Daemon {
    // Dropped first: no request is granted while everything is being restored.
    control: Control,
    adapting: Adapting,
    _heartbeats: HeartbeatThreads,
}

impl Daemon {
    /// Starts a daemon. The first decisions of the mechanisms are applied before this returns.
    pub fn start(options: Options<'_>) -> Result<Daemon> {
        let Options { names, configuration, logger, .. } = options;
        let metrics = configuration.metrics.map(listen).transpose()?;
        let root = Root::default();
        let mailbox = Arc::new(Mailbox::default());
        let heartbeats = HeartbeatThreads::start(&root)?;
        let links = DaemonLinks {
            decision_log: decision_log(&options, &mailbox),
            requests: RequestReader::new(Arc::clone(&mailbox)),
            starvation: heartbeats.detector(),
        };
        let (adapting, meter) = Adapting::with(names, configuration, links, logger.clone())?;
        let serve = |listener| {
            Control::start(Context {
                root: root.clone(),
                configuration: configuration.clone(),
                mailbox,
                meter,
                logger: logger.clone(),
                listener,
                groups_refused: groups_refused(names),
                metrics,
                format_metrics: options.metrics,
            })
        };
        let unable = |e| failed("the socket for requests can't be opened", e);
        match Listener::bind(&root, NAME).map_err(unable).and_then(serve) {
            Ok(control) => Ok(Daemon { control, adapting, _heartbeats: heartbeats }),
            Err(failure) => Err(adapting.abandon(failure)),
        }
    }

    /// Whether mechanisms still decide. If they end by themselves, the main thread's wait for
    /// signals ends.
    pub fn is_at_work(&self) -> bool {
        self.adapting.is_running()
    }

    /// Ends the daemon. Returns whether everything was restored.
    pub fn end(self) -> bool {
        // No request is granted meanwhile, and the connections no longer need file descriptors.
        drop(self.control);
        self.adapting.end().complete
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    let unable = |e| failed(&format!("metrics can't be served at {address}"), e);
    let listener = TcpListener::bind(address).map_err(unable)?;
    listener.set_nonblocking(true).map_err(unable)?;
    Ok(listener)
}

/// Reason why requests for device groups are refused, if so.
fn groups_refused(names: &[String]) -> Option<String> {
    let selective = names.iter().any(|name| name == SELECTIVE);
    (!selective).then(|| {
        format!("device groups have no effect here: {SELECTIVE} is not among --mechanisms")
    })
}

fn decision_log(options: &Options<'_>, mailbox: &Arc<Mailbox>) -> DecisionLog {
    let began = || LogHeader {
        latlab: env!("CARGO_PKG_VERSION").to_owned(),
        mechanisms: options.names.to_vec(),
        configuration: options.text.to_owned(),
    };
    let planned = options.log.map(|path| PlannedLog { path: path.to_owned(), began: began() });
    let status = Status {
        latlab: env!("CARGO_PKG_VERSION").to_owned(),
        process: std::process::id(),
        began: clock::now(),
        mechanisms: options.names.to_vec(),
        ..Status::default()
    };
    DecisionLog::new(status, Arc::clone(mailbox), planned)
}
