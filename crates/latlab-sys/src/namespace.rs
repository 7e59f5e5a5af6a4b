//! Namespaces that end with the last process in them: networks, and System V and POSIX IPC objects
//! (`namespaces(7)`).

use crate::thread;
use rustix::thread::UnshareFlags;
use std::io;

/// Moves the calling thread into a network namespace of its own. Its only interface is the loopback
/// interface, which is up.
pub fn unshare_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)?;
    crate::init::loopback_up()
}

/// Whether [`unshare_network`] is permitted: a thread calls it, and the namespace ends with that
/// thread.
pub fn check_network() -> io::Result<()> {
    thread::on_its_own(unshare_network)
}

/// Moves the calling thread, and those that it starts from now on, into an IPC namespace of their
/// own (`ipc_namespaces(7)`). Needs root. Where the kernel has no IPC namespaces, process 1 goes on
/// without one: it is the only user of the machine.
pub fn unshare_ipc() -> io::Result<()> {
    match unshare(UnshareFlags::NEWIPC) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) && std::process::id() == 1 => Ok(()),
        moved => moved,
    }
}

fn unshare(namespace: UnshareFlags) -> io::Result<()> {
    // SAFETY: the thread gets another namespace; it does not stop sharing its files or memory.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespace) }?)
}
