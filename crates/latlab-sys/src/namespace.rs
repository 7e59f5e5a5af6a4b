//! Namespaces: a network, or System V's and POSIX's objects, that nobody else sees and that are
//! gone with the last who is in them, however they end (`namespaces(7)`).

use std::io;

/// Moves the calling thread into a network of its own, in which there is the loopback interface
/// and nothing else.
pub fn own_network() -> io::Result<()> {
    // SAFETY: unshare takes no pointers.
    crate::checked(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    crate::init::loopback_up()
}

/// Whether [`own_network`] is permitted here: a thread tries it, and the network is gone with it.
pub fn try_network() -> io::Result<()> {
    let tried = std::thread::Builder::new().spawn(own_network)?.join();
    tried.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}

/// Moves the calling thread, and those that it starts from now on, among semaphores and queues of
/// their own (`ipc_namespaces(7)`). Only root may. Where the kernel has no such namespaces, the first
/// process of a machine does without: what it leaves behind ends with the machine.
pub fn own_ipc() -> io::Result<()> {
    // SAFETY: unshare takes no pointers.
    match crate::checked(unsafe { libc::unshare(libc::CLONE_NEWIPC) }) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) && std::process::id() == 1 => Ok(()),
        moved => moved.map(drop),
    }
}
