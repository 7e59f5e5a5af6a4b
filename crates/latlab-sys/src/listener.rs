//! A local socket in `/run/latlab` that every process of the machine may connect to. Its rights
//! depend on its user and groups (see [`crate::peer`]).

use crate::lock::{self, FOLDER};
use crate::root::Root;
use rustix::io::retry_on_intr;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// The listening socket. Dropping it removes its file; if the process is killed, the file is
/// removed with the claim of the same name (see [`crate::claim`]).
#[derive(Debug)]
pub struct Listener(UnixListener, PathBuf);

impl Listener {
    /// Listens on the socket of this name. The caller has the claim of this name, so a socket file
    /// that exists was left by a killed process and is removed.
    pub fn bind(root: &Root, name: &str) -> io::Result<Listener> {
        let path = path(root, name);
        let folder = lock::folder(root)?;
        // The umask of the process that made the folder may have been stricter.
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let socket = UnixListener::bind(&path)?;
        let listener = Listener(socket, path);
        fs::set_permissions(&listener.1, Permissions::from_mode(0o666))?;
        listener.0.set_nonblocking(true)?;
        Ok(listener)
    }

    /// The next connection; `WouldBlock` where none waits. It is non-blocking.
    pub fn accept(&self) -> io::Result<UnixStream> {
        let (connection, _) = self.0.accept()?;
        connection.set_nonblocking(true)?;
        Ok(connection)
    }
}

/// Readable, for poll(2), when a connection waits.
impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.1);
    }
}

/// Connects to the socket of this name. Connecting, reads and writes wait no longer than `patience`
/// each (`WouldBlock`). `NotFound` or `ConnectionRefused` where no process listens.
pub fn connect(root: &Root, name: &str, patience: Duration) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path(root, name))?;
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let connection = UnixStream::from(socket_with(family, kind, SocketFlags::CLOEXEC, None)?);
    // First: connect(2) waits, too, where too many wait already.
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))?;
    retry_on_intr(|| rustix::net::connect(&connection, &address))?;
    Ok(connection)
}

fn path(root: &Root, name: &str) -> PathBuf {
    root.path(FOLDER).join(format!("{name}.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn listener_accepts_everybody_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let none = connect(&root, "adapt", PATIENCE).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
        let listener = Listener::bind(&root, "adapt").unwrap();
        let mode = fs::metadata(path(&root, "adapt")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        let mut near = connect(&root, "adapt", PATIENCE).unwrap();
        drop(listener.accept().unwrap());
        assert_eq!(near.read(&mut [0; 8]).unwrap(), 0);
        let waits = listener.accept().unwrap_err();
        assert_eq!(waits.kind(), io::ErrorKind::WouldBlock, "no connection waits");
        drop(listener);
        assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0, "the file is removed");
    }

    /// As a process that is stopped.
    #[test]
    fn listener_that_accepts_nobody_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let listener = Listener::bind(&root, "adapt").unwrap();
        // The shortest queue.
        rustix::net::listen(&listener.0, 0).unwrap();
        let patience = Duration::from_millis(20);
        let waiting: Vec<_> = (0..3).map(|_| connect(&root, "adapt", patience)).collect();
        let error = waiting.into_iter().find_map(Result::err).expect("the queue is full");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn listener_replaces_the_socket_of_a_killed_process() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        std::mem::forget(Listener::bind(&root, "adapt").unwrap());
        let listener = Listener::bind(&root, "adapt").unwrap();
        connect(&root, "adapt", PATIENCE).unwrap();
        listener.accept().unwrap();
    }
}
