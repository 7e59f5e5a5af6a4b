//! The requests for device groups: the last one of each process, until the process ends or releases
//! it.

use latlab_core::mechanism::Request;
use latlab_sys::peer::Peer;
use latlab_sys::poll::Interest;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

/// Most processes that can have a request at once.
pub(super) const CAPACITY: usize = 256;

#[derive(Debug, Default)]
pub(super) struct GroupRequests(Vec<(Arc<Peer>, Vec<String>)>);

impl GroupRequests {
    /// Replaces the request of a process. Returns false if too many others have one.
    pub(super) fn add(&mut self, peer: &Arc<Peer>, groups: Vec<String>) -> bool {
        self.release(peer);
        if self.0.len() >= CAPACITY {
            return false;
        }
        self.0.push((Arc::clone(peer), groups));
        true
    }

    /// Removes the request of a process.
    pub(super) fn release(&mut self, peer: &Peer) {
        self.0.retain(|(other, _)| other.process != peer.process);
    }

    /// The descriptors that become readable at the end of each process.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (BorrowedFd<'_>, Interest)> {
        self.0.iter().map(|(peer, _)| (peer.as_fd(), Interest::Reading))
    }

    /// Removes the requests of processes that have ended, given in the order of
    /// [`awaited`](GroupRequests::awaited). Whether there was one.
    pub(super) fn remove_ended(&mut self, ended: &[bool]) -> bool {
        let before = self.0.len();
        let mut ended = ended.iter();
        self.0.retain(|_| !ended.next().is_some_and(|ended| *ended));
        self.0.len() < before
    }

    /// All requests, for mechanisms.
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
    fn last_request_of_process_counts_until_it_ends_or_releases() {
        let (near, _far) = UnixStream::pair().unwrap();
        let peer = Arc::new(Peer::of(&near).unwrap());
        let mut requests = GroupRequests::default();
        assert!(requests.add(&peer, vec!["AUDIO".to_owned()]));
        assert!(requests.add(&peer, vec!["VIDEO".to_owned()]));
        let process = peer.process;
        assert_eq!(requests.list(), [Request { process, groups: vec!["VIDEO".to_owned()] }]);
        assert!(!requests.remove_ended(&[false]));
        assert!(requests.remove_ended(&[true]));
        assert!(requests.list().is_empty());
        requests.add(&peer, vec!["AUDIO".to_owned()]);
        requests.release(&peer);
        assert!(requests.list().is_empty());
    }
}
