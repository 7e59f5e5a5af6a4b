//! Accepting connections.

use super::access::Access;
use super::connection::Connection;
use super::server::{Connections, Server};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use std::io;

/// Most programs without access that are connected at once.
const DENIED: usize = 16;
/// Pause after a connection could not be accepted, as when no descriptor is free.
const PAUSE: Nanos = Nanos::from_millis(100);

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
        let access = Access::of(&stream, &self.context.configuration, &self.context.root);
        let is_denied = |access: &Access| matches!(access, Access::Denied(_));
        let denied = connections.programs.iter().filter(|one| is_denied(&one.client));
        if is_denied(&access) && denied.count() >= DENIED {
            self.refused += 1;
            return;
        }
        connections.programs.push(Connection::new(access, stream));
    }

    pub(super) fn accept_reader(&self, connections: &mut Connections) {
        let Some(listener) = &self.context.metrics else { return };
        match listener.accept() {
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                connections.add_reader(Connection::new((), stream));
            }
            _ => connections.pause = clock::now() + PAUSE,
        }
    }
}
