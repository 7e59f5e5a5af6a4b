//! Asking the daemon that adapts this machine, over its socket.

use super::daemon::NAME;
use crate::failure::{Failure, Result};
use latlab_core::mechanism::asking::Answer;
use latlab_core::mechanism::status::Status;
use latlab_sys::listener;
use latlab_sys::root::Root;
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of the longest answer: a daemon for which more stands can't be.
const LONGEST: u64 = 16 << 20;

/// Has the daemon know that this process needs these device groups, from now on and until it ends,
/// whatever program it becomes.
pub(crate) fn ask(groups: &str) -> Result<()> {
    let line = answer(&format!("groups {groups}"))?;
    match Answer::read(&line) {
        Some(Answer::Ok(_)) => Ok(()),
        _ => Err(refused(&line)),
    }
}

/// How things stand with the daemon.
pub(crate) fn status() -> Result<Status> {
    let line = answer("status")?;
    serde_json::from_str(&line).map_err(|_| refused(&line))
}

fn answer(request: &str) -> Result<String> {
    let unheard = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Failure::Unsupported(
            "no latlab adapts this machine: start `latlab adapt` first, as root".to_owned(),
        ),
        io::ErrorKind::WouldBlock => Failure::Failed(format!(
            "the latlab that adapts this machine does not answer within {} s",
            PATIENCE.as_secs()
        )),
        _ => Failure::Failed(format!("the latlab that adapts this machine can't be asked: {e}")),
    };
    let mut connection = listener::connect(&Root::default(), NAME, PATIENCE).map_err(unheard)?;
    // Who is refused before it has asked hears why all the same.
    let asked = connection.write_all(format!("{request}\n").as_bytes());
    let mut answer = Vec::new();
    while !answer.ends_with(b"\n") {
        let mut piece = [0; 4096];
        let read = connection.read(&mut piece).map_err(unheard)?;
        if read == 0 || answer.len() as u64 > LONGEST {
            asked.map_err(unheard)?;
            return Err(unheard(io::ErrorKind::UnexpectedEof.into()));
        }
        answer.extend_from_slice(&piece[..read]);
    }
    Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
}

/// What an answer means that is not the one hoped for.
fn refused(line: &str) -> Failure {
    match Answer::read(line) {
        Some(Answer::Wrong(why)) => Failure::Failed(why),
        Some(Answer::Denied(why)) => {
            Failure::Unsupported(format!("the latlab that adapts this machine refuses: {why}"))
        }
        _ => Failure::Failed(
            "the latlab that adapts this machine answers what this one does not understand: are \
             they of one version?"
                .to_owned(),
        ),
    }
}
