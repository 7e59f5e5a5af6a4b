//! A local socket in `/run/latlab` at which every process of the machine may knock: who may do what
//! is judged by whom it is (see [`crate::peer`]).

use crate::lock::{self, FOLDER};
use crate::root::Root;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// Where others connect. The file goes when this is dropped, and otherwise with the claim of the
/// same name (see [`crate::claim`]).
#[derive(Debug)]
pub struct Listener(UnixListener, PathBuf);

impl Listener {
    /// Listens at the socket of this name, which is to be claimed: one that a killed process left
    /// is taken away.
    pub fn bind(root: &Root, name: &str) -> io::Result<Listener> {
        let path = path(root, name);
        let folder = lock::folder(root)?;
        // The folder may have been made with whatever umask somebody had.
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

    /// Who is next, if anybody waits. Reading from it and writing to it never waits.
    pub fn accept(&self) -> io::Result<UnixStream> {
        let (connection, _) = self.0.accept()?;
        connection.set_nonblocking(true)?;
        Ok(connection)
    }
}

/// Can be read from, for poll(2), when somebody waits.
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

/// Connects to the socket of this name. What is read or written then waits no longer than
/// `patience`. `NotFound` or `ConnectionRefused` where nobody listens.
pub fn connect(root: &Root, name: &str, patience: Duration) -> io::Result<UnixStream> {
    let connection = UnixStream::connect(path(root, name))?;
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))?;
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
    fn everybody_may_knock_until_nobody_listens() {
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
        assert_eq!(waits.kind(), io::ErrorKind::WouldBlock, "nobody is there");
        drop(listener);
        assert_eq!(fs::read_dir(root.path(FOLDER)).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_socket_that_a_killed_process_left_is_nobody_s() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        std::mem::forget(Listener::bind(&root, "adapt").unwrap());
        let listener = Listener::bind(&root, "adapt").unwrap();
        connect(&root, "adapt", PATIENCE).unwrap();
        listener.accept().unwrap();
    }
}
