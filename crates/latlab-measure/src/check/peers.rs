//! The process at the other end of a terminal or of a connection, if a thread waits for it on this
//! machine. The thread is woken by a worker of the kernel or by an interrupt, not by that process.

use crate::explain::proc;
use latlab_check::{FileKind, Held};
use latlab_core::time::Nanos;
use latlab_sys::clock;
use latlab_sys::root::Root;
use std::collections::HashMap;

/// The processes at the other ends of files, by process and descriptor.
#[derive(Default)]
pub(super) struct Peers(HashMap<(u32, u64), (Nanos, Option<Held>)>);

/// A file as the kernel names it in `/proc/PID/fd`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// The side of a pseudo-terminal that a terminal emulator has (`/dev/ptmx`), by the number of the terminal.
    Master(u32),
    /// The side of a pseudo-terminal that a program has.
    Terminal(u32),
    /// A socket, by its inode.
    Socket(u64),
}

/// Time for which a found peer is valid: looking through the descriptors of all processes takes
/// milliseconds.
const VALID: Nanos = Nanos::from_secs(5);

/// Largest number of files whose other ends are looked for.
const MOST: usize = 64;

impl Peers {
    /// The process at the other end of a file, if exactly one process holds it.
    pub(super) fn of(&mut self, pid: u32, descriptor: u64, kind: FileKind) -> Option<Held> {
        if !matches!(kind, FileKind::Terminal | FileKind::Socket) {
            return None;
        }
        let now = clock::now();
        let (found, peer) = self.0.get(&(pid, descriptor)).copied().unzip();
        if found.is_some_and(|found| now < found + VALID) {
            return peer.flatten();
        }
        let peer = if self.0.len() < MOST { find(pid, descriptor) } else { None };
        self.0.insert((pid, descriptor), (now, peer));
        peer
    }
}

fn find(pid: u32, descriptor: u64) -> Option<Held> {
    let root = Root::default();
    let other = match end(pid, &descriptor.to_string())? {
        End::Master(number) => End::Terminal(number),
        End::Terminal(number) => End::Master(number),
        End::Socket(inode) => {
            let tables = ["tcp", "tcp6"].map(|name| root.text(format!("proc/{pid}/net/{name}")));
            End::Socket(other_socket(&tables.map(Option::unwrap_or_default).concat(), inode)?)
        }
    };
    let processes = root.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let holds = |process: &u32| {
        let descriptors = root.names(format!("proc/{process}/fd"));
        descriptors.iter().any(|one| end(*process, one).as_ref() == Some(&other))
    };
    let mut holders = processes.filter(holds);
    let only = holders.next().filter(|_| holders.next().is_none())?;
    proc::thread_of(only, only)
}

fn end(process: u32, descriptor: &str) -> Option<End> {
    let root = Root::default();
    let link = root.link(format!("proc/{process}/fd/{descriptor}"))?;
    if link == "/dev/ptmx" || link == "/dev/pts/ptmx" {
        let about = root.text(format!("proc/{process}/fdinfo/{descriptor}"))?;
        let number = about.lines().find_map(|line| line.strip_prefix("tty-index:"))?;
        return Some(End::Master(number.trim().parse().ok()?));
    }
    let terminal = link.strip_prefix("/dev/pts/").and_then(|number| number.parse().ok());
    let inode = || link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    terminal.map(End::Terminal).or_else(|| Some(End::Socket(inode()?)))
}

/// The inode of the socket at the other end of a connection within the machine, by the text of
/// `/proc/net/tcp` (`proc_pid_net(5)`).
fn other_socket(tables: &str, inode: u64) -> Option<u64> {
    let entries = tables.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        Some((*fields.get(1)?, *fields.get(2)?, fields.get(9)?.parse::<u64>().ok()?))
    });
    let (local, remote, _) = entries.clone().find(|(.., its)| *its == inode)?;
    { entries }.find(|(its, to, _)| (*its, *to) == (remote, local)).map(|(.., other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn sockets_of_a_connection_are_found_by_their_addresses() {
        let tables = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1\n\
            1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 101 1\n\
            2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 102 1\n\
            3: 0200000A:C350 0300000A:0016 01 00000000:00000000 00:00000000 00000000     0        0 103 1\n";
        let of = |inode| other_socket(tables, inode);
        assert_eq!(
            (of(101), of(102), of(103), of(100), of(7)),
            (Some(102), Some(101), None, None, None)
        );
    }

    #[test]
    fn this_process_is_at_the_other_end_of_its_own_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_server, _) = listener.accept().unwrap();
        let (unix, _other) = UnixStream::pair().unwrap();
        let own = std::process::id();
        let of = |file: i32, kind| {
            let peer = Peers::default().of(own, u64::try_from(file).unwrap(), kind);
            peer.map(|peer| peer.tid)
        };
        assert_eq!(of(client.as_raw_fd(), FileKind::Socket), Some(own));
        assert_eq!(of(unix.as_raw_fd(), FileKind::Socket), None);
        assert_eq!(of(client.as_raw_fd(), FileKind::Pipe), None);
    }
}
