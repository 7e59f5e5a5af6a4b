//! Namespaces that end with the last process in them: networks, and System V and POSIX IPC objects;
//! and the PID namespace that /proc shows (`namespaces(7)`).

use crate::thread;
use rustix::thread::UnshareFlags;
use std::path::Path;
use std::{fs, io};

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

/// Moves the calling thread, and threads that it starts from now on, into an IPC namespace of their
/// own (`ipc_namespaces(7)`). Needs root. Where the kernel has no IPC namespaces, process 1 goes on
/// without one: it is the only user of the machine.
pub fn unshare_ipc() -> io::Result<()> {
    match unshare(UnshareFlags::NEWIPC) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) && std::process::id() == 1 => Ok(()),
        moved => moved,
    }
}

/// Fails, with a sentence, if /proc shows another PID namespace than this process's: its IDs belong
/// to other threads here.
pub fn check_proc() -> io::Result<()> {
    check_own(fs::read_link("/proc/self"), std::process::id())
}

/// The same where /proc says of itself that this process has the id `shown`.
fn check_own(shown: io::Result<impl AsRef<Path>>, id: u32) -> io::Result<()> {
    match shown {
        Ok(shown) if shown.as_ref() == Path::new(&id.to_string()) => Ok(()),
        // Not found: this process can't be seen from there.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Err(io::Error::other(
            "/proc shows another PID namespace: mount that of this process there (unshare \
             --mount-proc)",
        )),
    }
}

fn unshare(namespace: UnshareFlags) -> io::Result<()> {
    // SAFETY: the thread gets another namespace; it does not stop sharing its files or memory.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespace) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_of_another_pid_namespace_is_refused() {
        check_proc().unwrap();
        let why = |shown: io::Result<&str>| check_own(shown, 7).unwrap_err().to_string();
        assert!(why(Ok("4711")).starts_with("/proc shows another PID namespace: "));
        assert!(why(Err(io::ErrorKind::NotFound.into())).contains("--mount-proc"));
        assert!(!why(Err(io::Error::from_raw_os_error(libc::EMFILE))).contains("namespace"));
        check_own(Ok("7"), 7).unwrap();
    }
}
