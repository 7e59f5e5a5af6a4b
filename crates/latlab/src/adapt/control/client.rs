//! One connection: what was heard, what is still to be said, and until when. Nothing waits here.

use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::poll::Awaited;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Whoever takes longer to send a request, or to take the answer, is not listened to any more.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// A connection with `who` on the other side.
#[derive(Debug)]
pub(super) struct Client<W> {
    pub(super) who: W,
    stream: File,
    heard: Vec<u8>,
    /// What is still to be said.
    answer: Vec<u8>,
    /// Whether the answer is the last.
    last: bool,
    deadline: Nanos,
}

/// What is to be answered, and whether nothing is heard after that.
pub(super) struct Said {
    pub(super) answer: String,
    pub(super) last: bool,
}

impl<W> Client<W> {
    pub(super) fn new(who: W, stream: impl Into<OwnedFd>) -> Client<W> {
        let stream = File::from(stream.into());
        let deadline = clock::now() + PATIENCE;
        Client { who, stream, heard: Vec::new(), answer: Vec::new(), last: false, deadline }
    }

    pub(super) fn awaited(&self) -> (BorrowedFd<'_>, Awaited) {
        let awaited = if self.answer.is_empty() { Awaited::Reading } else { Awaited::Writing };
        (self.stream.as_fd(), awaited)
    }

    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Goes on now that something can be read or written; `listen` is given all that was heard so
    /// far, at most one byte more than `most`. Whether the connection stays.
    pub(super) fn go_on(
        &mut self,
        most: usize,
        listen: impl FnOnce(&W, &[u8]) -> Option<Said>,
    ) -> bool {
        if self.answer.is_empty() {
            match self.hear(most) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(e) => return is_for_later(&e),
            }
            let Some(said) = listen(&self.who, &self.heard) else { return true };
            self.heard.clear();
            self.answer = said.answer.into_bytes();
            self.last = said.last;
        }
        self.say()
    }

    fn hear(&mut self, most: usize) -> io::Result<usize> {
        let before = self.heard.len();
        self.heard.resize(most + 1, 0);
        let heard = (&self.stream).read(&mut self.heard[before..]);
        self.heard.truncate(before + heard.as_ref().unwrap_or(&0));
        heard
    }

    /// Says as much as goes now. Whether the connection stays.
    fn say(&mut self) -> bool {
        match (&self.stream).write(&self.answer) {
            Ok(said) => drop(self.answer.drain(..said)),
            Err(e) => return is_for_later(&e),
        }
        if self.answer.is_empty() {
            self.deadline = clock::now() + PATIENCE;
        }
        !(self.answer.is_empty() && self.last)
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, Client<()>) {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        (near, Client::new((), far))
    }

    fn whole(heard: &[u8], last: bool) -> Option<Said> {
        let text = String::from_utf8_lossy(heard).into_owned();
        text.ends_with('\n').then_some(Said { answer: text, last })
    }

    #[test]
    fn a_request_in_pieces_is_answered_when_it_is_whole() {
        let (mut near, mut client) = pair();
        near.write_all(b"sta").unwrap();
        assert!(client.go_on(16, |(), heard| whole(heard, true)));
        assert!(client.go_on(16, |(), _| None), "nothing more was sent, and it stays");
        near.write_all(b"tus\n").unwrap();
        assert!(!client.go_on(16, |(), heard| whole(heard, true)), "that was the last");
        let mut answer = [0; 16];
        let read = near.read(&mut answer).unwrap();
        assert_eq!(&answer[..read], b"status\n");
    }

    #[test]
    fn no_more_than_one_byte_too_many_is_kept_of_what_is_sent() {
        let (mut near, mut client) = pair();
        near.write_all(&[b'x'; 100]).unwrap();
        let mut heard = 0;
        client.go_on(16, |(), all| {
            heard = all.len();
            None
        });
        assert_eq!(heard, 17);
    }

    #[test]
    fn who_has_gone_is_not_kept() {
        let (near, mut client) = pair();
        drop(near);
        assert!(!client.go_on(16, |(), _| None));
    }

    #[test]
    fn an_answer_that_nobody_takes_waits_for_later() {
        let (mut near, mut client) = pair();
        near.write_all(b"x").unwrap();
        let long = || Some(Said { answer: "y".repeat(1 << 20), last: true });
        assert!(client.go_on(16, |(), _| long()));
        assert_eq!(client.awaited().1, Awaited::Writing);
        let (mut got, mut buffer) = (0, vec![0; 1 << 16]);
        while got < 1 << 20 {
            got += near.read(&mut buffer).unwrap();
            client.go_on(16, |(), _| None);
        }
        assert_eq!(got, 1 << 20);
    }
}
