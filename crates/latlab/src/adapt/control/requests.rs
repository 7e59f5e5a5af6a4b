//! The requests for device groups: the last one of each process and of each thread, until the
//! process ends or releases it.

use latlab_core::mechanism::Request;
use latlab_sys::peer::Peer;
use latlab_sys::poll::Interest;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

/// Most requests at once.
pub(super) const CAPACITY: usize = 256;

#[derive(Debug, Default)]
pub(super) struct GroupRequests(Vec<(Arc<Peer>, Request)>);

impl GroupRequests {
    /// Replaces the request of a process or thread. Returns false if there are too many others.
    pub(super) fn add(&mut self, peer: &Arc<Peer>, request: Request) -> bool {
        let is_same =
            |one: &Request| (one.process, one.thread) == (request.process, request.thread);
        self.0.retain(|(_, one)| !is_same(one));
        if self.0.len() >= CAPACITY {
            return false;
        }
        self.0.push((Arc::clone(peer), request));
        true
    }

    /// Removes the request of a thread, or all of a process and its threads.
    pub(super) fn release(&mut self, process: i32, thread: Option<i32>) {
        let of =
            |one: &Request| one.process == process && (thread.is_none() || one.thread == thread);
        self.0.retain(|(_, one)| !of(one));
    }

    /// Removes the requests of threads that have ended.
    pub(super) fn remove_ended_threads(&mut self, has_thread: impl Fn(i32, i32) -> bool) {
        self.0.retain(|(_, one)| one.thread.is_none_or(|thread| has_thread(one.process, thread)));
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
        self.0.iter().map(|(_, request)| request.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn peer() -> Arc<Peer> {
        let (near, _far) = UnixStream::pair().unwrap();
        Arc::new(Peer::of(&near).unwrap())
    }

    fn request(process: i32, thread: Option<i32>, group: &str) -> Request {
        Request { process, thread, groups: vec![group.to_owned()] }
    }

    #[test]
    fn last_request_of_process_counts_until_it_ends_or_releases() {
        let (peer, mut requests) = (peer(), GroupRequests::default());
        assert!(requests.add(&peer, request(1, None, "AUDIO")));
        assert!(requests.add(&peer, request(1, None, "VIDEO")));
        assert_eq!(requests.list(), [request(1, None, "VIDEO")]);
        assert!(!requests.remove_ended(&[false]));
        assert!(requests.remove_ended(&[true]));
        assert!(requests.list().is_empty());
        requests.add(&peer, request(1, None, "AUDIO"));
        requests.release(1, None);
        assert!(requests.list().is_empty());
    }

    #[test]
    fn thread_has_a_request_beside_that_of_its_process() {
        let (peer, mut requests) = (peer(), GroupRequests::default());
        let whole = request(1, None, "AUDIO");
        for one in [&whole, &request(1, Some(2), "VIDEO"), &request(1, Some(3), "HID")] {
            assert!(requests.add(&peer, one.clone()));
        }
        requests.release(1, Some(3));
        assert_eq!(requests.list(), [whole.clone(), request(1, Some(2), "VIDEO")]);
        requests.remove_ended_threads(|process, thread| (process, thread) != (1, 2));
        assert_eq!(requests.list(), [whole]);
        requests.add(&peer, request(1, Some(2), "VIDEO"));
        requests.release(1, None);
        assert!(requests.list().is_empty());
    }

    #[test]
    fn number_of_requests_is_limited() {
        let (peer, mut requests) = (peer(), GroupRequests::default());
        for thread in 1.. {
            if !requests.add(&peer, request(1, Some(thread), "AUDIO")) {
                break;
            }
            assert!(requests.list().len() <= CAPACITY);
        }
        assert!(requests.add(&peer, request(1, Some(1), "VIDEO")), "it replaces one");
    }
}
