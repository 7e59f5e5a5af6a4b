//! Waiting for several file descriptors at once (`poll(2)`).

use crate::clock::rustix_timespec;
use latlab_core::time::Nanos;
use rustix::event::{PollFd, PollFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The event that is awaited at a descriptor. A hang-up of the other side is always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// There is something to read, a connection to accept, or the process of a pidfd has ended.
    Reading,
    /// There is room to write.
    Writing,
}

/// Waits until one of these descriptors is ready, at most this long; without a limit where there is
/// none. Returns which are ready, in the same order; none where the time was up or a signal came.
pub fn wait(all: &[(BorrowedFd<'_>, Interest)], at_most: Option<Nanos>) -> io::Result<Vec<bool>> {
    let mut entries: Vec<PollFd<'_>> =
        all.iter().map(|(fd, awaited)| entry(*fd, *awaited)).collect();
    poll(&mut entries, at_most)?;
    Ok(entries.iter().map(|entry| !entry.revents().is_empty()).collect())
}

/// Waits until there is something to read or no writer is left, at most this long. False where the
/// time was up or a signal came.
pub(crate) fn readable(file: &impl AsFd, at_most: Option<Nanos>) -> io::Result<bool> {
    poll(&mut [PollFd::new(file, PollFlags::IN)], at_most)
}

fn entry(fd: BorrowedFd<'_>, awaited: Interest) -> PollFd<'_> {
    let events = match awaited {
        Interest::Reading => PollFlags::IN,
        Interest::Writing => PollFlags::OUT,
    };
    PollFd::from_borrowed_fd(fd, events)
}

/// Waits as [`wait`] does. Whether a descriptor is ready.
fn poll(entries: &mut [PollFd<'_>], at_most: Option<Nanos>) -> io::Result<bool> {
    let at_most = at_most.map(rustix_timespec);
    match rustix::event::poll(entries, at_most.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn poll_returns_the_descriptors_that_are_ready() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let all = [(far.as_fd(), Interest::Reading), (far.as_fd(), Interest::Writing)];
        assert_eq!(wait(&all[..1], Some(Nanos(1000))).unwrap(), [false]);
        assert_eq!(wait(&all, None).unwrap(), [false, true]);
        near.write_all(b"x").unwrap();
        assert_eq!(wait(&all, None).unwrap(), [true, true]);
    }

    #[test]
    fn poll_reports_a_hang_up() {
        let (near, far) = UnixStream::pair().unwrap();
        drop(near);
        assert_eq!(wait(&[(far.as_fd(), Interest::Reading)], None).unwrap(), [true]);
    }
}
