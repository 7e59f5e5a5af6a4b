//! The programs that fetch, unpack and build: started, watched, ended.

use super::Progress;
use crate::failure::{Failure, Result, failed};
use latlab_sys::process::{self, Running};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program of the system, whose messages are those that everybody can look up.
pub(crate) fn tool(program: &str) -> Command {
    let mut command = process::tied(program);
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// What a program says that answers at once; none where it fails.
pub(crate) fn ask(command: &mut Command) -> Result<Option<String>> {
    let output = command.output().map_err(|e| missing(command, &e))?;
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Runs a program to its end, what it says going to `log`, and `look` being called meanwhile.
pub(crate) fn run(
    command: &mut Command,
    log: &Path,
    progress: &mut dyn Progress,
    look: &mut dyn FnMut(&mut dyn Progress),
) -> Result<()> {
    let path = log.display().to_string();
    let file = File::options().append(true).create(true).open(log);
    let file = file.map_err(|e| failed(&path, e))?;
    let twin = file.try_clone().map_err(|e| failed(&path, e))?;
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdout(twin).stderr(file);
    let mut running = Running::start(command).map_err(|e| missing(command, &e))?;
    loop {
        let status = running.child().try_wait().map_err(|e| failed(&name, e))?;
        match status {
            Some(status) if status.success() => return Ok(()),
            // Ctrl-C reaches it as it reaches us, and it may be the first to end.
            _ if progress.pause() => return Err(interrupted()),
            Some(status) => return Err(complaint(&name, log, &status.to_string())),
            None => look(progress),
        }
    }
}

/// What is said where the user asked to end.
pub(crate) fn interrupted() -> Failure {
    Failure::Failed("ended on request: nothing was changed".to_owned())
}

/// The program's own last complaint, else how it ended.
fn complaint(name: &str, log: &Path, status: &str) -> Failure {
    let said = std::fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let last = said.lines().rev().find(|line| line.starts_with("E: "));
    let last = last.or_else(|| said.lines().rev().find(|line| !line.trim().is_empty()));
    let words = last.map_or(status, |line| line.trim_start_matches("E: ").trim());
    Failure::Failed(format!("{name}: {words}"))
}

fn missing(command: &Command, error: &std::io::Error) -> Failure {
    let name = command.get_program().to_string_lossy();
    if error.kind() == ErrorKind::NotFound {
        return Failure::Unsupported(format!("there is no {name} on this machine"));
    }
    failed(&name, error)
}
