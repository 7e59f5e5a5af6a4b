//! Waiting for several descriptors at once (`poll(2)`).

use crate::clock::timespec;
use latlab_core::time::Nanos;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// What is waited for at a descriptor. That the other side has gone is always heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// That something can be read, a connection be accepted, or that a process has ended.
    Reading,
    /// That something can be written.
    Writing,
}

/// Waits until one of these is as awaited, at most so long, endlessly without a time. Which are, in
/// the same order; none of them where the time was up or a signal came.
pub fn wait(all: &[(BorrowedFd<'_>, Awaited)], at_most: Option<Nanos>) -> io::Result<Vec<bool>> {
    let entry = |(fd, awaited): &(BorrowedFd<'_>, Awaited)| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: match awaited {
            Awaited::Reading => libc::POLLIN,
            Awaited::Writing => libc::POLLOUT,
        },
        revents: 0,
    };
    let mut entries: Vec<libc::pollfd> = all.iter().map(entry).collect();
    let patience = at_most.map(timespec);
    let patience = patience.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = entries.len() as libc::nfds_t;
    // SAFETY: so many pollfds, valid to write to; the time, if any, outlives the call; no signal
    // mask.
    let answer = crate::checked(unsafe {
        libc::ppoll(entries.as_mut_ptr(), count, patience, std::ptr::null())
    });
    match answer {
        Ok(_) => Ok(entries.iter().map(|entry| entry.revents != 0).collect()),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(vec![false; entries.len()]),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn it_is_heard_which_one_has_something_to_read() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let all = [(far.as_fd(), Awaited::Reading), (far.as_fd(), Awaited::Writing)];
        assert_eq!(wait(&all[..1], Some(Nanos(1000))).unwrap(), [false]);
        assert_eq!(wait(&all, None).unwrap(), [false, true]);
        near.write_all(b"x").unwrap();
        assert_eq!(wait(&all, None).unwrap(), [true, true]);
    }

    #[test]
    fn it_is_heard_that_the_other_side_has_gone() {
        let (near, far) = UnixStream::pair().unwrap();
        drop(near);
        assert_eq!(wait(&[(far.as_fd(), Awaited::Reading)], None).unwrap(), [true]);
    }
}
