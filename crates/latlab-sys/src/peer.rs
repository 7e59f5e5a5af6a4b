//! The process on the other side of a local socket, and its rights (`SO_PEERCRED`, unix(7)).

use crate::poll::{self, Interest};
use crate::root::Root;
use latlab_core::time::Nanos;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

/// A process that has connected, with the user and groups that it had then.
#[derive(Debug)]
pub struct Peer {
    /// Its process id.
    pub process: i32,
    /// Its effective user when it connected.
    pub user: u32,
    groups: Vec<u32>,
    pidfd: OwnedFd,
}

impl Peer {
    /// The process that made this connection. `NotFound` where it has ended or can't be seen from
    /// here, as one outside of this container.
    pub fn of(connection: &UnixStream) -> io::Result<Peer> {
        let Credentials { process, user, group } = credentials(connection)?;
        if process <= 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        let pidfd = match pidfd_of_peer(connection) {
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => pidfd_of(process),
            pidfd => pidfd,
        };
        let mut groups = supplementary_groups(connection)?;
        groups.push(group);
        let peer = Peer { process, user, groups, pidfd: pidfd? };
        if peer.has_ended()? { Err(io::ErrorKind::NotFound.into()) } else { Ok(peer) }
    }

    /// Whether the process has ended. Others may still have the connection, as its children, and
    /// its id may belong to another process by now.
    pub fn has_ended(&self) -> io::Result<bool> {
        Ok(poll::wait(&[(self.as_fd(), Interest::Reading)], Some(Nanos(0)))?.contains(&true))
    }

    /// Whether it is root, or a member of the Unix group of this name in the `etc/group` below
    /// `root`.
    pub fn is_root_or_in(&self, root: &Root, group: Option<&str>) -> bool {
        let number = || group_number(&root.text("etc/group")?, group?);
        self.user == 0 || number().is_some_and(|number| self.groups.contains(&number))
    }
}

/// Readable, for poll(2), when the process has ended.
impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Whether there is a Unix group of this name in the `etc/group` below `root`.
pub fn has_group(root: &Root, name: &str) -> bool {
    root.text("etc/group").is_some_and(|groups| group_number(&groups, name).is_some())
}

/// The number of a Unix group (group(5)).
fn group_number(groups: &str, name: &str) -> Option<u32> {
    let mut lines = groups.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

/// `SO_PEERGROUPS` and `SO_PEERPIDFD` (Linux 6.5) of `asm-generic/socket.h`.
const PEER_GROUPS: libc::c_int = 59;
const PEER_PIDFD: libc::c_int = 77;

/// As `struct ucred` (unix(7)). The kernel reports process 0 for one outside of this PID namespace,
/// which the type of rustix can't express.
struct Credentials {
    process: i32,
    user: u32,
    group: u32,
}

fn credentials(connection: &UnixStream) -> io::Result<Credentials> {
    let mut words = [0, u32::MAX, u32::MAX];
    option(connection, libc::SO_PEERCRED, &mut words)?;
    let [process, user, group] = words;
    Ok(Credentials { process: process.cast_signed(), user, group })
}

/// The groups of the peer except its first.
fn supplementary_groups(connection: &UnixStream) -> io::Result<Vec<u32>> {
    // As many as a process can have (NGROUPS_MAX).
    let mut groups = vec![0; 65_536];
    let count = option(connection, PEER_GROUPS, &mut groups)?;
    groups.truncate(count);
    groups.shrink_to_fit();
    Ok(groups)
}

/// The process that has connected, even if its id belongs to another by now.
fn pidfd_of_peer(connection: &UnixStream) -> io::Result<OwnedFd> {
    let mut fd = [u32::MAX];
    option(connection, PEER_PIDFD, &mut fd)?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd[0].cast_signed()) })
}

/// The process that has this id now, for kernels without `SO_PEERPIDFD`.
fn pidfd_of(process: i32) -> io::Result<OwnedFd> {
    let process = Pid::from_raw(process).ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}

/// Reads a socket option made of words of four bytes. Returns the number of words.
fn option(connection: &UnixStream, name: libc::c_int, words: &mut [u32]) -> io::Result<usize> {
    let mut bytes = libc::socklen_t::try_from(size_of_val(words)).unwrap_or(0);
    let to = words.as_mut_ptr().cast();
    let fd = connection.as_raw_fd();
    // SAFETY: there is room for the number of bytes passed.
    crate::checked(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, to, &raw mut bytes) })?;
    Ok(bytes as usize / size_of::<u32>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_is_known_and_alive() {
        let (near, _far) = UnixStream::pair().unwrap();
        let peer = Peer::of(&near).unwrap();
        assert_eq!(u32::try_from(peer.process).unwrap(), std::process::id());
        assert!(!peer.has_ended().unwrap());
    }

    #[test]
    fn peer_pidfd_is_readable_when_the_process_ends() {
        let mut child = crate::process::command("/bin/true").spawn().unwrap();
        let pidfd = pidfd_of(child.id().try_into().unwrap()).unwrap();
        assert_eq!(poll::wait(&[(pidfd.as_fd(), Interest::Reading)], None).unwrap(), [true]);
        let (near, _far) = UnixStream::pair().unwrap();
        let peer = Peer { pidfd, ..Peer::of(&near).unwrap() };
        assert!(peer.has_ended().unwrap(), "its id is not free yet");
        child.wait().unwrap();
        assert!(peer.has_ended().unwrap());
        assert!(pidfd_of(child.id().try_into().unwrap()).is_err(), "it is reaped");
    }

    #[test]
    fn peer_group_membership_decides_its_rights() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("etc")).unwrap();
        let groups = b"root:x:0:\naudio:x:29:a,b\nbad\n";
        crate::file::write_atomically(&folder.path().join("etc/group"), groups).unwrap();
        let root = Root::new(folder.path());
        assert!(has_group(&root, "audio") && !has_group(&root, "bad"));
        let (near, _far) = UnixStream::pair().unwrap();
        let peer = |user, groups| Peer { user, groups, ..Peer::of(&near).unwrap() };
        assert!(peer(0, vec![0]).is_root_or_in(&root, None));
        assert!(peer(1000, vec![4, 29]).is_root_or_in(&root, Some("audio")));
        assert!(!peer(1000, vec![4, 29]).is_root_or_in(&root, None));
        assert!(!peer(1000, vec![4]).is_root_or_in(&root, Some("audio")));
        assert!(!peer(1000, vec![0]).is_root_or_in(&root, Some("missing")));
    }
}
