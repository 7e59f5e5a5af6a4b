//! The requests for device groups: the last one of each process and of each thread, until the
//! process ends or releases it.

use latlab_mechanism::Request;
use latlab_sys::peer::Peer;
use latlab_sys::poll::Interest;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

/// Most requests at once.
const CAPACITY: usize = 256;
/// Most requests of one user other than root, and of all of them: nobody can keep others out.
const OF_USER: usize = 128;
const OF_OTHERS: usize = 192;

/// The user root.
const ROOT: u32 = 0;

/// How many of something users may have. Only root may use the rest.
pub(super) struct Quota {
    pub(super) all: usize,
    /// All users but root together.
    pub(super) of_others: usize,
    /// One user but root.
    pub(super) of_user: usize,
}

impl Quota {
    /// The limit that one more for this user would exceed. `users` are the owners of the existing
    /// ones.
    pub(super) fn exceeded(
        &self,
        user: u32,
        users: impl Iterator<Item = u32> + Clone,
    ) -> Option<usize> {
        let is_full = |most: usize, count: usize| (count >= most).then_some(most);
        let all = is_full(self.all, users.clone().count());
        if user == ROOT {
            return all;
        }
        let others = is_full(self.of_others, users.clone().filter(|one| *one != ROOT).count());
        let own = is_full(self.of_user, users.filter(|one| *one == user).count());
        own.or(others).or(all)
    }
}

#[derive(Debug, Default)]
pub(super) struct GroupRequests(Vec<(Arc<Peer>, Request)>);

impl GroupRequests {
    /// Replaces the request of a process or thread. Refuses it, with a reason, if there are too many
    /// others.
    pub(super) fn add(&mut self, peer: &Arc<Peer>, request: Request) -> Result<(), String> {
        let is_same =
            |one: &Request| (one.process, one.thread) == (request.process, request.thread);
        self.0.retain(|(_, one)| !is_same(one));
        let quota = Quota { all: CAPACITY, of_others: OF_OTHERS, of_user: OF_USER };
        if let Some(most) = quota.exceeded(peer.user, self.0.iter().map(|(one, _)| one.user)) {
            return Err(format!("too many requests: there are {most} already"));
        }
        self.0.push((Arc::clone(peer), request));
        Ok(())
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
        requests.add(&peer, request(1, None, "AUDIO")).unwrap();
        requests.add(&peer, request(1, None, "VIDEO")).unwrap();
        assert_eq!(requests.list(), [request(1, None, "VIDEO")]);
        assert!(!requests.remove_ended(&[false]));
        assert!(requests.remove_ended(&[true]));
        assert!(requests.list().is_empty());
        requests.add(&peer, request(1, None, "AUDIO")).unwrap();
        requests.release(1, None);
        assert!(requests.list().is_empty());
    }

    #[test]
    fn thread_has_a_request_beside_that_of_its_process() {
        let (peer, mut requests) = (peer(), GroupRequests::default());
        let whole = request(1, None, "AUDIO");
        for one in [&whole, &request(1, Some(2), "VIDEO"), &request(1, Some(3), "HID")] {
            requests.add(&peer, one.clone()).unwrap();
        }
        requests.release(1, Some(3));
        assert_eq!(requests.list(), [whole.clone(), request(1, Some(2), "VIDEO")]);
        requests.remove_ended_threads(|process, thread| (process, thread) != (1, 2));
        assert_eq!(requests.list(), [whole]);
        requests.add(&peer, request(1, Some(2), "VIDEO")).unwrap();
        requests.release(1, None);
        assert!(requests.list().is_empty());
    }

    /// Adds requests of threads of this user until one is refused. Returns the number of requests.
    fn flood(requests: &mut GroupRequests, user: u32) -> usize {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut peer = Peer::of(&near).unwrap();
        peer.user = user;
        let peer = Arc::new(peer);
        let process = i32::try_from(user).unwrap() + 1;
        let add = |thread| requests.add(&peer, request(process, Some(thread), "AUDIO"));
        let added = (1..1000).map(add).take_while(Result::is_ok).count();
        let replaced = requests.add(&peer, request(process, Some(1), "VIDEO"));
        assert_eq!(replaced.is_ok(), added > 0, "it replaces one");
        added
    }

    #[test]
    fn number_of_requests_is_limited_for_each_user_and_root_has_room() {
        let mut requests = GroupRequests::default();
        let users = [1000, 1001, 1002, 1003, ROOT];
        let added = users.map(|user| flood(&mut requests, user));
        assert_eq!(added, [OF_USER, OF_OTHERS - OF_USER, 0, 0, CAPACITY - OF_OTHERS]);
        assert_eq!(requests.list().len(), CAPACITY);
    }
}
