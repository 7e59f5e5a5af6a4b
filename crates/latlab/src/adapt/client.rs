//! The client of the daemon that adapts this machine.

use super::daemon::NAME;
use crate::failure::{Failure, Result};
use latlab_core::mechanism::protocol::Answer;
use latlab_core::mechanism::status::Status;
use latlab_sys::listener;
use latlab_sys::root::Root;
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the longest answer that is accepted.
const LONGEST: u64 = 16 << 20;

/// Requests these device groups for this process, until it ends, whatever program it executes.
pub(crate) fn request_groups(groups: &str) -> Result<()> {
    let line = query(&format!("groups {groups}"))?;
    match Answer::read(&line) {
        Some(Answer::Ok(_)) => Ok(()),
        _ => Err(refusal(&line)),
    }
}

/// The daemon's status.
pub(crate) fn status() -> Result<Status> {
    let line = query("status")?;
    serde_json::from_str(&line).map_err(|_| refusal(&line))
}

/// Sends a request, and returns the line that answers it.
fn query(request: &str) -> Result<String> {
    let mut connection =
        listener::connect(&Root::default(), NAME, PATIENCE).map_err(|e| unreachable(&e))?;
    // A client that is refused gets its answer before it has sent anything.
    let sent = connection.write_all(format!("{request}\n").as_bytes());
    let mut answer = Vec::new();
    while !answer.ends_with(b"\n") {
        let mut piece = [0; 4096];
        let read = connection.read(&mut piece).map_err(|e| unreachable(&e))?;
        if read == 0 || answer.len() as u64 > LONGEST {
            sent.map_err(|e| unreachable(&e))?;
            return Err(unreachable(&io::ErrorKind::UnexpectedEof.into()));
        }
        answer.extend_from_slice(&piece[..read]);
    }
    Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
}

fn unreachable(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Failure::Unsupported(
            "no latlab adapts this machine: start `latlab adapt` first, as root".to_owned(),
        ),
        io::ErrorKind::WouldBlock => Failure::Failed(format!(
            "the latlab that adapts this machine did not answer within {} s",
            PATIENCE.as_secs()
        )),
        _ => Failure::Failed(format!(
            "the latlab that adapts this machine can't be reached: {error}"
        )),
    }
}

/// The failure that an answer other than the expected one means.
fn refusal(line: &str) -> Failure {
    match Answer::read(line) {
        Some(Answer::Wrong(why)) => Failure::Failed(why),
        Some(Answer::Denied(why)) => {
            Failure::Unsupported(format!("the latlab that adapts this machine refuses: {why}"))
        }
        _ => Failure::Failed(
            "the answer of the latlab that adapts this machine can't be read: use the same version \
             of latlab for both"
                .to_owned(),
        ),
    }
}
