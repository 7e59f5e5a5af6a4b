//! Accepting connections, and checking their access to requests.

use super::connection::Connection;
use super::server::{Connections, Server};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::peer::Peer;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Most programs without access that are connected at once.
const DENIED: usize = 16;
/// Pause after a connection could not be accepted, as when no descriptor is free.
const PAUSE: Nanos = Nanos::from_millis(100);

/// Access of a program that has connected.
#[derive(Debug)]
pub(super) enum Access {
    /// It may send requests.
    Granted(Arc<Peer>),
    /// It may not, for this reason.
    Denied(String),
}

impl Server {
    pub(super) fn accept_program(&mut self, connections: &mut Connections) {
        let stream = match self.context.listener.accept() {
            Ok(stream) => stream,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                connections.pause = clock::now() + PAUSE;
                return;
            }
        };
        let access = self.access(&stream);
        let is_denied = |access: &Access| matches!(access, Access::Denied(_));
        let denied = connections.programs.iter().filter(|one| is_denied(&one.client));
        if is_denied(&access) && denied.count() >= DENIED {
            self.refused += 1;
            return;
        }
        connections.programs.push(Connection::new(access, stream));
    }

    fn access(&self, stream: &UnixStream) -> Access {
        let group = self.context.configuration.allow.as_deref();
        match (Peer::of(stream), group) {
            (Ok(peer), _) if peer.is_root_or_in(&self.context.root, group) => {
                Access::Granted(Arc::new(peer))
            }
            (Ok(_), Some(group)) => {
                Access::Denied(format!("only root and members of the group {group} may ask"))
            }
            (Ok(_), None) => Access::Denied(
                "only root may ask: to allow a group as well, name it with allow in the \
                 configuration"
                    .to_owned(),
            ),
            (Err(_), _) => Access::Denied(
                "your process is not visible to the daemon: is it in another container?".to_owned(),
            ),
        }
    }

    pub(super) fn accept_reader(&self, connections: &mut Connections) {
        let Some(listener) = &self.context.metrics else { return };
        match listener.accept() {
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                connections.readers.push(Connection::new((), stream));
            }
            _ => connections.pause = clock::now() + PAUSE,
        }
    }
}
