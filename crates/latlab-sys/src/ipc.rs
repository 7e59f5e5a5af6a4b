//! The namespace of System V's and POSIX's objects (`ipc_namespaces(7)`).

use std::io;

/// Gives the calling thread, and those that it starts from now on, an IPC namespace of their own:
/// what is made in it is gone with the last of them, however they end. Only root may.
pub fn own_namespace() -> io::Result<()> {
    // SAFETY: unshare takes no pointers.
    crate::checked(unsafe { libc::unshare(libc::CLONE_NEWIPC) }).map(drop)
}
