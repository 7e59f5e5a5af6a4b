//! Slurm's commands: running them, and the meaning of their errors.

use super::last_line;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::process::{self, Running};
use std::io::{ErrorKind, Write as _};
use std::process::Command;

/// The output of a command of Slurm.
pub(super) struct CommandOutput {
    /// Whether the exit code was 0.
    pub(super) success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A command of Slurm, which Ctrl-C on latlab's terminal does not end.
pub(super) fn slurm_command(name: &str) -> Command {
    let mut command = process::command_ignoring_signals(name);
    command.env("LC_ALL", "C");
    command
}

/// Runs a command to its end, with `input` on its stdin.
pub(super) fn run(command: &mut Command, input: &str) -> Result<CommandOutput> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut running = Running::start(command).map_err(|e| not_started(&name, &e))?;
    let child = running.child();
    if let Some(mut stdin) = child.stdin.take() {
        // A command that ends without reading says why on stderr.
        let _ = stdin.write_all(input.as_bytes());
    }
    let read = |pipe: Option<&mut dyn std::io::Read>| {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |pipe| pipe.read_to_end(&mut bytes)).context(&name)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    // stderr is short enough for a pipe's buffer, so that reading it second can't deadlock.
    let stdout = read(child.stdout.as_mut().map(|pipe| pipe as &mut dyn std::io::Read))?;
    let stderr = read(child.stderr.as_mut().map(|pipe| pipe as &mut dyn std::io::Read))?;
    let status = child.wait().context(&name)?;
    Ok(CommandOutput { success: status.success(), stdout, stderr })
}

fn not_started(name: &str, error: &std::io::Error) -> Failure {
    if error.kind() == ErrorKind::NotFound {
        return Failure::unsupported(format!(
            "Slurm is not installed: {name} is missing; apt-get install slurm-client, and put the \
             cluster's slurm.conf into /etc/slurm"
        ));
    }
    failed(name, error)
}

/// The failure of a command that wrote this to stderr. Where no cluster answers, it is an
/// unsupported machine.
pub(super) fn failure(what: &str, stderr: &str) -> Failure {
    let why = last_line(stderr);
    let no_cluster = ["configuration source", "configuration file", "contact slurm controller"];
    if no_cluster.iter().any(|words| stderr.contains(words)) {
        let what = "Slurm is installed, but no cluster answers";
        return Failure::unsupported(format!("{what}: {why}; check SLURM_CONF and sinfo"));
    }
    Failure::failed(format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_part::failure::FailureKind;

    #[test]
    fn failure_is_unsupported_only_without_cluster() {
        let stderr = "sbatch: error: invalid partition specified: x\n\
                    sbatch: error: Batch job submission failed: Invalid partition name specified\n";
        let unknown = failure("sbatch", stderr);
        assert_eq!(unknown.kind, FailureKind::Failed);
        assert!(unknown.text.ends_with("name specified"), "{unknown}");
        let stderr = "sbatch: error: Batch job submission failed: Unable to contact slurm controller \
                    (connect failure)\n";
        assert_eq!(failure("sbatch", stderr).kind, FailureKind::Unsupported);
    }
}
