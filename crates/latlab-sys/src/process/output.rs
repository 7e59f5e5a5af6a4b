//! The output of a program that answers at once.

use super::Running;
use crate::file;
use std::io;
use std::process::{Command, Output, Stdio};

/// Runs a program to its end, without an input. Returns its exit status and all that it wrote.
/// Unlike `std::process::Command::output`, which panics where a pipe can't be read, this returns an
/// error whichever system call fails. What descendants of the program write after its end is lost.
pub fn output(command: &mut Command) -> io::Result<Output> {
    // Files, as each of two pipes would have to be read while the program waits for the other.
    let (stdout, stderr) = (file::in_memory()?, file::in_memory()?);
    command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut running = Running::start(command)?;
    let status = running.child().wait()?;
    Ok(Output { status, stdout: file::contents(&stdout)?, stderr: file::contents(&stderr)? })
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;

    #[test]
    fn output_has_status_and_both_streams_whole() {
        // More than two pipes hold.
        let script = "read -r word; yes out | head -c 200000; yes err | head -c 300000 >&2; exit 3";
        let output = output(command("sh").args(["-c", script])).unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout.len(), output.stderr.len()), (200_000, 300_000));
        assert!(output.stdout.starts_with(b"out\nout\n") && output.stderr.starts_with(b"err\n"));
    }

    #[test]
    fn output_of_a_missing_program_is_an_error() {
        let error = output(&mut command("/latlab-missing")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
