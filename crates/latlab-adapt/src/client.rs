//! The client of the daemon that adapts this machine.

use super::daemon::NAME;
use latlab_mechanism::protocol::Answer;
use latlab_mechanism::status::Status;
use latlab_part::failure::{Failure, Result};
use latlab_sys::listener;
use latlab_sys::root::Root;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the longest answer that is accepted.
const LONGEST: u64 = 16 << 20;

/// Requests these device groups for this process, until it ends, whatever program it executes.
pub fn request_groups(groups: &str) -> Result<()> {
    let line = query(&format!("groups {groups}"))?;
    match Answer::read(&line) {
        Some(Answer::Ok(_)) => Ok(()),
        _ => Err(refusal(&line)),
    }
}

/// The daemon's status.
pub fn status() -> Result<Status> {
    let line = query("status")?;
    serde_json::from_str(&line).map_err(|_| refusal(&line))
}

/// Sends a request, and returns the line that answers it.
fn query(request: &str) -> Result<String> {
    let connect = || listener::connect(&Root::default(), NAME, PATIENCE);
    answer(connect, request).map_err(|e| unreachable(&e))
}

/// Returns the answer to a request. The daemon closes a connection on which nothing came for a second:
/// a process that had to wait for a CPU so long asks anew.
fn answer(
    mut connect: impl FnMut() -> io::Result<UnixStream>,
    request: &str,
) -> io::Result<String> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    const ATTEMPTS: usize = 3;
    for _ in 1..ATTEMPTS {
        match ask(connect()?, request) {
            Err(closed) if [BrokenPipe, ConnectionReset].contains(&closed.kind()) => {}
            answer => return answer,
        }
    }
    ask(connect()?, request)
}

/// Asks once.
fn ask(mut connection: UnixStream, request: &str) -> io::Result<String> {
    // A client that is refused gets its answer before it has sent anything.
    let sent = connection.write_all(format!("{request}\n").as_bytes());
    let mut answer = Vec::new();
    while !answer.ends_with(b"\n") {
        let mut piece = [0; 4096];
        let read = connection.read(&mut piece)?;
        if read == 0 || answer.len() as u64 > LONGEST {
            sent?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.extend_from_slice(&piece[..read]);
    }
    Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
}

fn unreachable(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Failure::unsupported(
            "no latlab adapts this machine: start `latlab adapt` first, as root",
        ),
        io::ErrorKind::WouldBlock => Failure::failed(format!(
            "the latlab that adapts this machine did not answer within {} s",
            PATIENCE.as_secs()
        )),
        _ => Failure::failed(format!(
            "the latlab that adapts this machine can't be reached: {error}"
        )),
    }
}

/// The failure that an answer other than the expected one means.
fn refusal(line: &str) -> Failure {
    match Answer::read(line) {
        Some(Answer::Wrong(why)) => Failure::failed(why),
        Some(Answer::Denied(why)) => {
            Failure::unsupported(format!("the latlab that adapts this machine refuses: {why}"))
        }
        _ => Failure::failed(
            "the answer of the latlab that adapts this machine can't be read: use the same version \
             of latlab for both",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connects to a daemon that has closed as many connections as `closed`, and answers the next.
    fn asked(closed: usize) -> (io::Result<String>, usize) {
        let (mut connections, mut far_end) = (0, None);
        let connect = || {
            let (near, mut far) = UnixStream::pair()?;
            connections += 1;
            if connections > closed {
                far.write_all(b"ok\n")?;
                far_end = Some(far);
            }
            Ok(near)
        };
        (answer(connect, "status"), connections)
    }

    #[test]
    fn connection_that_was_closed_is_made_anew_at_most_twice() {
        for closed in 0..3 {
            let (answer, connections) = asked(closed);
            assert_eq!((answer.unwrap().as_str(), connections), ("ok", closed + 1));
        }
        let (answer, connections) = asked(9);
        assert_eq!((answer.unwrap_err().kind(), connections), (io::ErrorKind::BrokenPipe, 3));
    }
}
