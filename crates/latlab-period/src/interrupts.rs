//! Asks `latlab adapt` for the interrupts that a thread needs (Seo, Jeong, Park, Kim and Lee 2009,
//! section 3.3: `intr_prioritize()`). docs/daemon.md describes the protocol.

use crate::settings::Refused;
use core::ffi::c_int;
use core::fmt::{self, Write as _};

const SOCKET: &[u8] = b"/run/latlab/adapt.sock";

/// The longest request, the newline included.
const LONGEST: usize = 256;

/// The daemon is a `SCHED_OTHER` task: real-time tasks may keep the CPU from it.
static PATIENCE: libc::timeval = libc::timeval { tv_sec: 2, tv_usec: 0 };

/// Says that the calling thread waits for interrupts of these device groups and of no others, such
/// as `AUDIO,NETWORK`; with none, that it waits for no device. Where `latlab adapt` runs with the
/// mechanism `selective`, the IRQ threads of these groups have the thread's real-time priority until
/// it ends or says otherwise.
///
/// Refused where no `latlab adapt` runs (ENOENT, ECONNREFUSED), does not answer for two seconds
/// (EAGAIN), does not permit it (EPERM), or does not know a group (EINVAL).
pub fn prioritize(groups: &str) -> Result<(), Refused> {
    // SAFETY: gettid takes nothing.
    let thread = unsafe { libc::gettid() };
    let mut line = Line { bytes: [0; LONGEST], length: 0 };
    let written = match groups {
        "" => writeln!(line, "release thread {thread}"),
        groups => writeln!(line, "groups {groups} thread {thread}"),
    };
    let too_long = Refused { what: c"the names of the groups are too long", number: libc::EINVAL };
    written.map_err(|_| too_long)?;
    let daemon = Daemon::connect()?;
    match daemon.ask(&line)? {
        [b'o', b'k', ..] => Ok(()),
        [b'd', ..] => Err(Refused {
            what: c"latlab adapt refuses this: see allow in its configuration, its --mechanisms, \
                    and its limit of 256 requests",
            number: libc::EPERM,
        }),
        _ => Err(Refused {
            what: c"latlab adapt does not know one of the device groups",
            number: libc::EINVAL,
        }),
    }
}

/// A request.
struct Line {
    bytes: [u8; LONGEST],
    length: usize,
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// The size of a type for the calls of sockets; none here is larger.
fn length<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(libc::socklen_t::MAX)
}

/// A connection to `latlab adapt`.
struct Daemon(c_int);

impl Daemon {
    fn connect() -> Result<Daemon, Refused> {
        // SAFETY: socket takes no pointers.
        let socket =
            unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(Refused::last(c"there is no socket for asking latlab adapt"));
        }
        let daemon = Daemon(socket);
        daemon.limit(libc::SO_RCVTIMEO)?;
        daemon.limit(libc::SO_SNDTIMEO)?;
        // SAFETY: an address of zeros is valid.
        let mut address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
        address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or_default();
        for (to, from) in address.sun_path.iter_mut().zip(SOCKET) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        let (at, size) = ((&raw const address).cast(), length::<libc::sockaddr_un>());
        // SAFETY: the address is valid for its size.
        match unsafe { libc::connect(socket, at, size) } {
            0 => Ok(daemon),
            _ => Err(Refused::last(c"no latlab adapts this machine: start latlab adapt")),
        }
    }

    /// Limits how long a call may wait.
    fn limit(&self, option: c_int) -> Result<(), Refused> {
        let (at, size) = ((&raw const PATIENCE).cast(), length::<libc::timeval>());
        // SAFETY: the value is valid for its size.
        match unsafe { libc::setsockopt(self.0, libc::SOL_SOCKET, option, at, size) } {
            0 => Ok(()),
            _ => Err(Refused::last(c"waiting for latlab adapt can't be limited")),
        }
    }

    /// Sends a request and returns the first two bytes of the answer.
    fn ask(&self, line: &Line) -> Result<[u8; 2], Refused> {
        let silent = || Refused::last(c"latlab adapt does not answer");
        // SAFETY: the line is valid for its length.
        let sent = unsafe {
            libc::send(self.0, line.bytes.as_ptr().cast(), line.length, libc::MSG_NOSIGNAL)
        };
        if usize::try_from(sent) != Ok(line.length) {
            return Err(silent());
        }
        let mut answer = [0; 2];
        // SAFETY: there is room for as many bytes.
        let got = unsafe {
            libc::recv(self.0, answer.as_mut_ptr().cast(), answer.len(), libc::MSG_WAITALL)
        };
        if usize::try_from(got) == Ok(answer.len()) { Ok(answer) } else { Err(silent()) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // SAFETY: the socket is open, and nothing uses it any more.
        unsafe { libc::close(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_too_long_are_refused() {
        let why = prioritize(&"A".repeat(LONGEST)).unwrap_err();
        assert_eq!(
            (why.what(), why.errno()),
            ("the names of the groups are too long", libc::EINVAL)
        );
    }

    #[test]
    fn line_holds_a_request_of_the_longest_kind() {
        let mut line = Line { bytes: [0; LONGEST], length: 0 };
        let text = "x".repeat(LONGEST);
        assert!(line.write_str(&text).is_ok() && line.write_str("x").is_err());
    }
}
