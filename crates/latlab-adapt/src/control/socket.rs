//! Accepting connections.

use super::access::Access;
use super::connection::Connection;
use super::requests::Quota;
use super::server::{Connections, PROGRAMS, Server};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use std::io;

/// Most programs without access that are connected at once.
const DENIED: usize = 16;
/// Most programs with access: of all users, of all but root, and of one user but root. A program may
/// keep its connection by asking again and again.
const GRANTED: Quota = Quota { all: PROGRAMS, of_others: 64, of_user: 32 };
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
        if connections.have_room_for(&access) {
            connections.programs.push(Connection::new(access, stream));
        } else {
            self.refused += 1;
        }
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

impl Connections {
    /// Whether one more program with this access may be connected.
    fn have_room_for(&self, access: &Access) -> bool {
        let users = self.programs.iter().filter_map(|one| one.client.user());
        match access.user() {
            Some(user) => GRANTED.exceeded(user, users).is_none(),
            None => self.programs.len() - users.count() < DENIED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_sys::peer::Peer;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    /// Connects programs of this user until there is no room. Returns their number.
    fn flood(connections: &mut Connections, user: u32) -> usize {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut peer = Peer::of(&near).unwrap();
        peer.user = user;
        let peer = Arc::new(peer);
        let mut connected = 0;
        loop {
            let access = Access::Granted(Arc::clone(&peer));
            if !connections.have_room_for(&access) {
                return connected;
            }
            connections.programs.push(Connection::new(access, near.try_clone().unwrap()));
            connected += 1;
        }
    }

    #[test]
    fn programs_of_one_user_leave_room_for_others_and_root() {
        let mut connections = Connections::default();
        let denied = || Access::Denied(String::new());
        while connections.have_room_for(&denied()) {
            let (near, _far) = UnixStream::pair().unwrap();
            connections.programs.push(Connection::new(denied(), near));
        }
        let connected = [1000, 1001, 1002, 0].map(|user| flood(&mut connections, user));
        assert_eq!(connected[..3], [32, 32, 0]);
        assert!(connections.programs.len() - connected[3] < PROGRAMS, "there was room for root");
    }
}
