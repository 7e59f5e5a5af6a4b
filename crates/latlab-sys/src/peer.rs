//! Who is on the other side of a local socket: its process, for as long as that lives, and what it
//! may (`SO_PEERCRED`, unix(7)).

use crate::root::Root;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

/// A process that has connected, as it was at that moment.
#[derive(Debug)]
pub struct Peer {
    /// Its number.
    pub process: i32,
    user: u32,
    groups: Vec<u32>,
    life: OwnedFd,
}

impl Peer {
    /// Who has connected here. `NotFound` where that process has ended or can't be seen from here, as
    /// one outside of our container.
    pub fn of(connection: &UnixStream) -> io::Result<Peer> {
        let who = credentials(connection)?;
        if who.pid <= 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        let life = life_of_peer(connection).or_else(|_| life_of(who.pid))?;
        let mut groups = supplementary(connection)?;
        groups.push(who.gid);
        Ok(Peer { process: who.pid, user: who.uid, groups, life })
    }

    /// Whether it is root, or a member of the Unix group of this name, as the machine under `root`
    /// has it.
    pub fn is_root_or_in(&self, root: &Root, group: Option<&str>) -> bool {
        let number = || number_of(&root.text("etc/group")?, group?);
        self.user == 0 || number().is_some_and(|number| self.groups.contains(&number))
    }
}

/// Whether the machine under `root` has a Unix group of this name.
pub fn has_group(root: &Root, name: &str) -> bool {
    root.text("etc/group").is_some_and(|groups| number_of(&groups, name).is_some())
}

/// Can be read from, for poll(2), when the process has ended.
impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.life.as_fd()
    }
}

/// The number of a Unix group (group(5)).
fn number_of(groups: &str, name: &str) -> Option<u32> {
    let mut lines = groups.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

fn credentials(connection: &UnixStream) -> io::Result<libc::ucred> {
    let mut who = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut bytes = length::<libc::ucred>(1);
    // SAFETY: `who` is valid to write to, as long as announced.
    crate::checked(unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut bytes,
        )
    })?;
    Ok(who)
}

/// `SO_PEERGROUPS` and `SO_PEERPIDFD` (Linux 6.5) of `asm-generic/socket.h`.
const PEER_GROUPS: libc::c_int = 59;
const PEER_PIDFD: libc::c_int = 77;

/// The groups of the peer besides its first.
fn supplementary(connection: &UnixStream) -> io::Result<Vec<u32>> {
    // As many as a process can have (NGROUPS_MAX).
    let mut groups = vec![0_u32; 65_536];
    let mut bytes = length::<u32>(groups.len());
    // SAFETY: `groups` is valid to write to, as long as announced.
    crate::checked(unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            PEER_GROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    })?;
    groups.truncate(bytes as usize / size_of::<u32>());
    groups.shrink_to_fit();
    Ok(groups)
}

/// The very process that has connected, whoever has its number now.
fn life_of_peer(connection: &UnixStream) -> io::Result<OwnedFd> {
    let mut fd: libc::c_int = -1;
    let mut bytes = length::<libc::c_int>(1);
    // SAFETY: `fd` is valid to write to, as long as announced.
    crate::checked(unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            PEER_PIDFD,
            (&raw mut fd).cast(),
            &raw mut bytes,
        )
    })?;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The process of this number now, on kernels that know no better.
fn life_of(process: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let fd = crate::checked(i32::try_from(fd).unwrap_or(-1))?;
    // SAFETY: the descriptor is fresh and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn length<T>(count: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>() * count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{self, Awaited};
    use latlab_core::time::Nanos;

    #[test]
    fn who_connects_is_known_and_lives() {
        let (near, _far) = UnixStream::pair().unwrap();
        let peer = Peer::of(&near).unwrap();
        assert_eq!(u32::try_from(peer.process).unwrap(), std::process::id());
        let ended = poll::wait(&[(peer.as_fd(), Awaited::Reading)], Some(Nanos(1000))).unwrap();
        assert_eq!(ended, [false]);
    }

    #[test]
    fn the_end_of_a_process_is_heard() {
        let mut child = crate::process::tied("/bin/true").spawn().unwrap();
        let life = life_of(child.id().try_into().unwrap()).unwrap();
        assert_eq!(poll::wait(&[(life.as_fd(), Awaited::Reading)], None).unwrap(), [true]);
        child.wait().unwrap();
        assert!(life_of(child.id().try_into().unwrap()).is_err(), "it has gone");
    }

    #[test]
    fn a_member_of_the_group_may_and_others_may_not() {
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
