//! Adapting as a daemon does: with a configuration, for who asks over a socket, with metrics and a
//! log.

use super::account::Account;
use super::beside::Beside;
use super::board::Board;
use super::canaries::Canaries;
use super::control::{Control, Office};
use super::log::Planned;
use super::voice::Voice;
use crate::failure::{Result, failed};
use latlab_core::mechanism::configuration::Configuration;
use latlab_core::mechanism::log::Began;
use latlab_core::mechanism::status::Status;
use latlab_sys::clock;
use latlab_sys::listener::Listener;
use latlab_sys::root::Root;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

/// The name of the socket and of the claim.
pub(super) const NAME: &str = "adapt";

/// The mechanism that does what programs ask for.
const SELECTIVE: &str = "selective";

/// What a daemon is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders<'a> {
    /// The mechanisms.
    pub(crate) names: &'a [String],
    pub(crate) configuration: &'a Configuration,
    /// Its text, for the log.
    pub(crate) text: &'a str,
    pub(crate) log: Option<&'a Path>,
    /// How metrics are written.
    pub(crate) metrics: fn(&Status) -> String,
    pub(crate) voice: &'a Voice,
}

/// A daemon at work. Dropping it ends it, and everything is given back.
#[derive(Debug)]
pub(crate) struct Daemon {
    // Nobody is told yes any more when things are given back.
    _control: Control,
    beside: Beside,
    _canaries: Canaries,
}

impl Daemon {
    /// Begins. What mechanisms decide at first is done before this returns.
    pub(crate) fn start(orders: Orders<'_>) -> Result<Daemon> {
        let Orders { names, configuration, voice, .. } = orders;
        let metrics = configuration.metrics.map(listen).transpose()?;
        let log = orders.log.map(|path| Planned { path: path.to_owned(), began: began(&orders) });
        let board = Arc::new(Board::default());
        let root = Root::default();
        let canaries = Canaries::start(&root)?;
        let ran = Arc::clone(&canaries.ran);
        let account = Account::of(at_first(names), Arc::clone(&board), log, ran);
        let (beside, meter) = Beside::told(names, configuration, account, voice.clone())?;
        let listener = Listener::bind(&root, NAME)
            .map_err(|e| failed("no program can ask for anything: the socket", e))?;
        let configuration = configuration.clone();
        let written = orders.metrics;
        let no_groups = (!names.iter().any(|name| name == SELECTIVE)).then(|| {
            format!("nothing comes of device groups here: {SELECTIVE} is not among --mechanisms")
        });
        let voice = voice.clone();
        let office = Office {
            root,
            configuration,
            board,
            meter,
            voice,
            listener,
            no_groups,
            metrics,
            written,
        };
        Ok(Daemon { _control: Control::start(office)?, beside, _canaries: canaries })
    }

    /// Whether it decides still. Where it ends by itself, whoever waits for signals is woken.
    pub(crate) fn is_at_work(&self) -> bool {
        self.beside.is_at_work()
    }
}

fn listen(address: std::net::SocketAddr) -> Result<TcpListener> {
    let unable = |e| failed(&format!("metrics can't be served at {address}"), e);
    let listener = TcpListener::bind(address).map_err(unable)?;
    listener.set_nonblocking(true).map_err(unable)?;
    Ok(listener)
}

fn began(orders: &Orders<'_>) -> Began {
    Began {
        latlab: env!("CARGO_PKG_VERSION").to_owned(),
        mechanisms: orders.names.to_vec(),
        configuration: orders.text.to_owned(),
    }
}

fn at_first(names: &[String]) -> Status {
    Status {
        latlab: env!("CARGO_PKG_VERSION").to_owned(),
        process: std::process::id(),
        began: clock::now(),
        mechanisms: names.to_vec(),
        ..Status::default()
    }
}
