//! Requests that stand: of each process the last one, until the process ends or takes it back.

use latlab_core::mechanism::Request;
use latlab_sys::peer::Peer;
use latlab_sys::poll::Awaited;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

/// So many processes can ask for something at once.
pub(super) const MOST: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Standing(Vec<(Arc<Peer>, Vec<String>)>);

impl Standing {
    /// From now on a process needs these groups. False where too many others need some.
    pub(super) fn ask(&mut self, peer: &Arc<Peer>, groups: Vec<String>) -> bool {
        self.release(peer);
        if self.0.len() >= MOST {
            return false;
        }
        self.0.push((Arc::clone(peer), groups));
        true
    }

    /// From now on it needs none.
    pub(super) fn release(&mut self, peer: &Peer) {
        self.0.retain(|(other, _)| other.process != peer.process);
    }

    /// What is to be waited for: the end of each process.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (BorrowedFd<'_>, Awaited)> {
        self.0.iter().map(|(peer, _)| (peer.as_fd(), Awaited::Reading))
    }

    /// Forgets the processes that have ended, which is asked of each in the order in which they are
    /// [awaited](Standing::awaited). Whether there was one.
    pub(super) fn end(&mut self, mut ended: impl FnMut() -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|_| !ended());
        self.0.len() < before
    }

    /// All of them, for who decides.
    pub(super) fn list(&self) -> Vec<Request> {
        let request = |(peer, groups): &(Arc<Peer>, Vec<String>)| Request {
            process: peer.process,
            groups: groups.clone(),
        };
        self.0.iter().map(request).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn of_a_process_the_last_request_counts_until_it_ends() {
        let (near, _far) = UnixStream::pair().unwrap();
        let peer = Arc::new(Peer::of(&near).unwrap());
        let mut standing = Standing::default();
        assert!(standing.ask(&peer, vec!["AUDIO".to_owned()]));
        assert!(standing.ask(&peer, vec!["VIDEO".to_owned()]));
        let process = peer.process;
        assert_eq!(standing.list(), [Request { process, groups: vec!["VIDEO".to_owned()] }]);
        assert!(!standing.end(|| false));
        assert!(standing.end(|| true));
        assert!(standing.list().is_empty());
        standing.ask(&peer, vec!["AUDIO".to_owned()]);
        standing.release(&peer);
        assert!(standing.list().is_empty());
    }
}
