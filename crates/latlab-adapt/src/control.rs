//! The control thread: answers programs at a Unix socket that everybody may connect to, and serves
//! metrics over TCP. No client can block it or make it use more memory.

mod access;
mod connection;
pub mod http;
mod requests;
mod server;
mod socket;

use super::log_thread::Logger;
use super::mailbox::Mailbox;
use latlab_bpf::wakers::WakerCounters;
use latlab_mechanism::configuration::Configuration;
use latlab_mechanism::status::Status;
use latlab_part::failure::{Result, failed};
use latlab_sys::listener::Listener;
use latlab_sys::process;
use latlab_sys::root::Root;
use server::Server;
use std::fs::File;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Sockets, configuration and data of the control thread.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) root: Root,
    pub(super) configuration: Configuration,
    pub(super) mailbox: Arc<Mailbox>,
    /// Counts of wake-ups by lower-priority tasks, where they are watched.
    pub(super) meter: Option<WakerCounters>,
    pub(super) logger: Logger,
    pub(super) listener: Listener,
    /// Reason why requests for device groups are refused, if so.
    pub(super) groups_refused: Option<String>,
    /// Socket at which metrics are served.
    pub(super) metrics: Option<TcpListener>,
    pub(super) format_metrics: fn(&Status) -> String,
}

/// The running control thread. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Control {
    thread: Option<JoinHandle<()>>,
    /// The writing end of a pipe. Closing it ends the thread.
    stop: Option<File>,
}

impl Control {
    pub(super) fn start(context: Context) -> Result<Control> {
        let unable = |e| failed("the control thread can't be started", e);
        let (stopped, stop) = process::pipe().map_err(unable)?;
        let mut server = Server::new(context);
        let thread = Builder::new().name("control".to_owned());
        let thread = thread.spawn(move || server.serve(&stopped)).map_err(unable)?;
        Ok(Control { thread: Some(thread), stop: Some(stop) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
