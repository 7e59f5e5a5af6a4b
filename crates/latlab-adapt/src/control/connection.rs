//! A connection that never blocks: received bytes, the reply to be sent, and a deadline.

use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::poll::Interest;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Longest time for a client to send a request, or to take the reply.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// A connection with a client.
#[derive(Debug)]
pub(super) struct Connection<T> {
    pub(super) client: T,
    stream: File,
    received: Vec<u8>,
    /// The rest of the reply that is still to be sent.
    unsent: Vec<u8>,
    /// Whether the connection ends after this reply.
    last: bool,
    deadline: Nanos,
}

/// A reply, and whether the connection ends after it.
pub struct Reply {
    pub text: String,
    pub last: bool,
}

impl<T> Connection<T> {
    pub(super) fn new(client: T, stream: impl Into<OwnedFd>) -> Connection<T> {
        let stream = File::from(stream.into());
        let deadline = clock::now() + PATIENCE;
        Connection {
            client,
            stream,
            received: Vec::new(),
            unsent: Vec::new(),
            last: false,
            deadline,
        }
    }

    /// The descriptor, and the event that the connection waits for.
    pub(super) fn awaited(&self) -> (BorrowedFd<'_>, Interest) {
        let awaited = if self.unsent.is_empty() { Interest::Reading } else { Interest::Writing };
        (self.stream.as_fd(), awaited)
    }

    /// Time at which the connection is dropped.
    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Reads or writes, once the connection is [ready](Connection::awaited). `reply` gets all
    /// bytes received since the last reply, at most `most + 1`, and returns none if the request is
    /// incomplete. Whether the connection stays open.
    pub(super) fn proceed(
        &mut self,
        most: usize,
        reply: impl FnOnce(&T, &[u8]) -> Option<Reply>,
    ) -> bool {
        if self.unsent.is_empty() {
            match self.receive(most) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(e) => return is_temporary(&e),
            }
            let Some(reply) = reply(&self.client, &self.received) else { return true };
            self.received.clear();
            self.unsent = reply.text.into_bytes();
            self.last = reply.last;
        }
        self.send()
    }

    fn receive(&mut self, most: usize) -> io::Result<usize> {
        let before = self.received.len();
        self.received.resize(most + 1, 0);
        let received = (&self.stream).read(&mut self.received[before..]);
        self.received.truncate(before + received.as_ref().unwrap_or(&0));
        received
    }

    /// Sends as much as possible now. Whether the connection stays open.
    fn send(&mut self) -> bool {
        match (&self.stream).write(&self.unsent) {
            Ok(sent) => drop(self.unsent.drain(..sent)),
            Err(e) => return is_temporary(&e),
        }
        if self.unsent.is_empty() {
            self.deadline = clock::now() + PATIENCE;
        }
        !(self.unsent.is_empty() && self.last)
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, Connection<()>) {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        (near, Connection::new((), far))
    }

    /// Echoes a whole line.
    fn echo(received: &[u8], last: bool) -> Option<Reply> {
        let text = String::from_utf8_lossy(received).into_owned();
        text.ends_with('\n').then_some(Reply { text, last })
    }

    #[test]
    fn request_in_pieces_is_answered_once_complete() {
        let (mut near, mut connection) = pair();
        near.write_all(b"sta").unwrap();
        assert!(connection.proceed(16, |(), received| echo(received, true)));
        assert!(connection.proceed(16, |(), _| None), "nothing more was sent, and it stays open");
        near.write_all(b"tus\n").unwrap();
        assert!(!connection.proceed(16, |(), received| echo(received, true)), "the last reply");
        let mut answer = [0; 16];
        let read = near.read(&mut answer).unwrap();
        assert_eq!(&answer[..read], b"status\n");
    }

    #[test]
    fn connection_keeps_at_most_one_byte_more_than_longest_request() {
        let (mut near, mut connection) = pair();
        near.write_all(&[b'x'; 100]).unwrap();
        let mut length = 0;
        connection.proceed(16, |(), received| {
            length = received.len();
            None
        });
        assert_eq!(length, 17);
    }

    #[test]
    fn connection_closed_by_client_is_dropped() {
        let (near, mut connection) = pair();
        drop(near);
        assert!(!connection.proceed(16, |(), _| None));
    }

    #[test]
    fn reply_is_sent_in_pieces_as_client_reads() {
        let (mut near, mut connection) = pair();
        near.write_all(b"x").unwrap();
        let long = || Some(Reply { text: "y".repeat(1 << 20), last: true });
        assert!(connection.proceed(16, |(), _| long()));
        assert_eq!(connection.awaited().1, Interest::Writing);
        let (mut got, mut buffer) = (0, vec![0; 1 << 16]);
        while got < 1 << 20 {
            got += near.read(&mut buffer).unwrap();
            connection.proceed(16, |(), _| None);
        }
        assert_eq!(got, 1 << 20);
    }
}
