//! Who is let in, and who of them may ask.

use super::client::Client;
use super::{Answering, Connected};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::peer::Peer;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// So many programs are listened to at once that may not ask.
const STRANGERS: usize = 16;
/// How long nobody is let in after that failed, as where no descriptor is free.
const PAUSE: Nanos = Nanos::from_millis(100);

/// A program that has connected.
#[derive(Debug)]
pub(super) enum Program {
    /// It may ask.
    Known(Arc<Peer>),
    /// It may not, and why.
    Stranger(String),
}

impl Answering {
    pub(super) fn let_in(&mut self, connected: &mut Connected) {
        let stream = match self.office.listener.accept() {
            Ok(stream) => stream,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                connected.pause = clock::now() + PAUSE;
                return;
            }
        };
        let program = self.judge(&stream);
        let is_stranger = |program: &Program| matches!(program, Program::Stranger(_));
        let strangers = connected.programs.iter().filter(|client| is_stranger(&client.who));
        if is_stranger(&program) && strangers.count() >= STRANGERS {
            self.refused += 1;
            return;
        }
        connected.programs.push(Client::new(program, stream));
    }

    /// Whether who has connected may ask.
    fn judge(&self, stream: &UnixStream) -> Program {
        let group = self.office.configuration.allow.as_deref();
        match (Peer::of(stream), group) {
            (Ok(peer), _) if peer.is_root_or_in(&self.office.root, group) => {
                Program::Known(Arc::new(peer))
            }
            (Ok(_), Some(group)) => {
                Program::Stranger(format!("only root and members of the group {group} may ask"))
            }
            (Ok(_), None) => Program::Stranger(
                "only root may ask: to let a group ask, name it with allow in the configuration"
                    .to_owned(),
            ),
            (Err(_), _) => Program::Stranger(
                "your process can't be seen from here: is it in another container?".to_owned(),
            ),
        }
    }

    pub(super) fn let_in_reader(&self, connected: &mut Connected) {
        let Some(listener) = &self.office.metrics else { return };
        match listener.accept() {
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                connected.readers.push(Client::new((), stream));
            }
            _ => connected.pause = clock::now() + PAUSE,
        }
    }
}
