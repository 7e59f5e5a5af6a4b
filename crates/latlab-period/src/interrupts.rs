//! Asks `latlab adapt` for the interrupts that a thread needs (Seo, Jeong, Park, Kim and Lee 2009,
//! section 3.3: `intr_prioritize()`). docs/daemon.md describes the protocol.

use crate::settings::{Refused, nanos};
use crate::spin::now;
use core::ffi::{CStr, c_int};
use core::fmt::{self, Write as _};
use core::time::Duration;

const SOCKET: &[u8] = b"/run/latlab/adapt.sock";

/// The longest request, the newline included.
const LONGEST: usize = 256;

/// The daemon is a `SCHED_OTHER` task: real-time tasks may keep the CPU from it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Says that the calling thread waits for interrupts of these device groups and of no others, such
/// as `AUDIO,NETWORK`; with none, that it waits for no device. Where `latlab adapt` runs with the
/// mechanism `selective`, the IRQ threads of these groups have the thread's real-time priority until
/// it ends or says otherwise.
///
/// Refused where no `latlab adapt` runs (ENOENT, ECONNREFUSED), does not answer for about two
/// seconds (EAGAIN) or ends (ECONNRESET, EPIPE), does not permit it (EPERM), or does not know a group (EINVAL).
/// Signal handlers run, but do not end the wait.
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
                    and its limits on requests",
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
        let refused = c"no latlab adapts this machine: start latlab adapt";
        // SAFETY: the address is valid for its size.
        despite_signals(refused, || unsafe { libc::connect(socket, at, size) } as isize)?;
        Ok(daemon)
    }

    /// Limits how long a call may wait.
    fn limit(&self, option: c_int) -> Result<(), Refused> {
        let time = libc::timeval { tv_sec: PATIENCE.as_secs().cast_signed(), tv_usec: 0 };
        let (at, size) = ((&raw const time).cast(), length::<libc::timeval>());
        // SAFETY: the value is valid for its size.
        match unsafe { libc::setsockopt(self.0, libc::SOL_SOCKET, option, at, size) } {
            0 => Ok(()),
            _ => Err(Refused::last(c"waiting for latlab adapt can't be limited")),
        }
    }

    /// Sends a request and returns the first two bytes of the answer.
    fn ask(&self, line: &Line) -> Result<[u8; 2], Refused> {
        const SILENT: &CStr = c"latlab adapt does not answer";
        let (request, mut answer) = (line.bytes.as_ptr().cast(), [0; 2]);
        // SAFETY: the line is valid for its length.
        let ask = || unsafe { libc::send(self.0, request, line.length, libc::MSG_NOSIGNAL) };
        // SAFETY: there is room for as many bytes.
        let receive = || unsafe {
            libc::recv(self.0, answer.as_mut_ptr().cast(), answer.len(), libc::MSG_WAITALL)
        };
        let sent = despite_signals(SILENT, ask)?;
        let got = despite_signals(SILENT, receive)?;
        // Requests and answers are short: they are sent as a whole, unless the connection ends.
        if sent == line.length && got == answer.len() {
            return Ok(answer);
        }
        Err(Refused { what: SILENT, number: libc::ECONNRESET })
    }
}

/// Repeats a call that a signal handler interrupts, which happens with every handler where the wait of
/// a socket is limited (`signal(7)`).
fn despite_signals(what: &'static CStr, mut call: impl FnMut() -> isize) -> Result<usize, Refused> {
    let end = now() + nanos(PATIENCE);
    loop {
        if let Ok(done) = usize::try_from(call()) {
            return Ok(done);
        }
        let refused = Refused::last(what);
        if refused.number != libc::EINTR {
            return Err(refused);
        }
        if now() >= end {
            return Err(Refused { number: libc::EAGAIN, ..refused });
        }
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
    use std::fs;
    use std::io::Write as _;
    use std::os::fd::IntoRawFd as _;
    use std::os::unix::net::UnixStream;
    use std::thread;

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

    /// Waits until a thread of this process sleeps.
    fn wait_until_asleep(id: c_int) {
        let path = std::format!("/proc/self/task/{id}/stat");
        // Its state follows its name, which stands in parentheses.
        let is_asleep = || {
            let stat = fs::read_to_string(&path).unwrap();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
        };
        while !is_asleep() {
            thread::yield_now();
        }
    }

    /// The answer to a request of a thread that handles five signals while it waits, on a connection
    /// on which `answer` acts then.
    fn asked(answer: impl FnOnce(UnixStream) + Send + 'static) -> Result<[u8; 2], Refused> {
        extern "C" fn handle(_: c_int) {}
        #[expect(clippy::fn_to_numeric_cast_any, reason = "sigaction(2) takes a number")]
        let handler = handle as *const () as libc::sighandler_t;
        let (ours, theirs) = UnixStream::pair().unwrap();
        let daemon = Daemon(ours.into_raw_fd());
        daemon.limit(libc::SO_RCVTIMEO).unwrap();
        // SAFETY: sigaction is made of numbers and a set of signals, for which zeros are a value.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the action is valid, and no old one is asked for.
        unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut()) };
        // SAFETY: pthread_self takes nothing.
        let asking = unsafe { libc::pthread_self() };
        // SAFETY: gettid takes nothing.
        let id = unsafe { libc::gettid() };
        let answering = thread::spawn(move || {
            for _ in 0..5 {
                // It sleeps again after the last one. Pauses would use up its patience.
                wait_until_asleep(id);
                // SAFETY: the thread that asks waits for the answer.
                unsafe { libc::pthread_kill(asking, libc::SIGUSR1) };
            }
            answer(theirs);
        });
        let line = Line { bytes: [b'x'; LONGEST], length: 1 };
        let answer = daemon.ask(&line);
        answering.join().unwrap();
        answer
    }

    #[test]
    fn request_is_answered_despite_signals() {
        assert_eq!(asked(|mut to| to.write_all(b"ok\n").unwrap()), Ok(*b"ok"));
    }

    #[test]
    fn daemon_that_ends_the_connection_is_told_by_the_error_number() {
        let ended = |number| Err(Refused { what: c"latlab adapt does not answer", number });
        let shut = |to: UnixStream| to.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(asked(shut), ended(libc::ECONNRESET));
        assert_eq!(asked(|mut to| to.write_all(b"o").unwrap()), ended(libc::ECONNRESET));
    }
}
