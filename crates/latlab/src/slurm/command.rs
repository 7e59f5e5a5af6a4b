//! Slurm's commands: started, heard to their end, and what it means where they fail.

use super::last_line;
use crate::failure::{Failure, Result, failed};
use latlab_sys::process::{self, Running};
use std::io::{ErrorKind, Write as _};
use std::process::Command;

/// What a command of Slurm said.
pub(super) struct Said {
    pub(super) well: bool,
    pub(super) answer: String,
    pub(super) complaint: String,
}

/// One of Slurm's commands. Ctrl-C is for us to hear.
pub(super) fn tool(name: &str) -> Command {
    let mut command = process::sheltered(name);
    command.env("LC_ALL", "C");
    command
}

/// Runs a command to its end.
pub(super) fn said(command: &mut Command, input: &str) -> Result<Said> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut running = Running::start(command).map_err(|e| missing(&name, &e))?;
    let child = running.child();
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let read = |pipe: Option<&mut dyn std::io::Read>| {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |pipe| pipe.read_to_end(&mut bytes)).map_err(|e| failed(&name, e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    // What they complain of fits in a pipe.
    let answer = read(child.stdout.as_mut().map(|pipe| pipe as &mut dyn std::io::Read))?;
    let complaint = read(child.stderr.as_mut().map(|pipe| pipe as &mut dyn std::io::Read))?;
    let status = child.wait().map_err(|e| failed(&name, e))?;
    Ok(Said { well: status.success(), answer, complaint })
}

fn missing(name: &str, error: &std::io::Error) -> Failure {
    if error.kind() == ErrorKind::NotFound {
        return Failure::Unsupported(format!(
            "there is no Slurm here: {name} is missing; its commands are in Debian's slurm-client \
             (apt-get install slurm-client), and the cluster's slurm.conf is to be in /etc/slurm"
        ));
    }
    failed(name, error)
}

/// Why one of them did not do what it was asked to do.
pub(super) fn refusal(what: &str, complaint: &str) -> Failure {
    let why = last_line(complaint);
    let no_cluster = ["configuration source", "configuration file", "contact slurm controller"];
    if no_cluster.iter().any(|words| complaint.contains(words)) {
        let what = "Slurm's commands are here, but no cluster answers";
        return Failure::Unsupported(format!("{what}: {why}; see SLURM_CONF and sinfo"));
    }
    Failure::Failed(format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_order_is_not_what_is_wrong_with_the_cluster() {
        let said = "sbatch: error: invalid partition specified: x\n\
                    sbatch: error: Batch job submission failed: Invalid partition name specified\n";
        assert!(
            matches!(refusal("sbatch", said), Failure::Failed(why) if why.ends_with("name specified"))
        );
        let said = "sbatch: error: Batch job submission failed: Unable to contact slurm controller \
                    (connect failure)\n";
        assert!(matches!(refusal("sbatch", said), Failure::Unsupported(_)));
    }
}
