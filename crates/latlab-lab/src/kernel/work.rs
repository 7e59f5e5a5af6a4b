//! The programs that fetch, unpack and build.

use super::{Progress, cache};
use crate::arch::Arch;
use latlab_part::failure::{Context as _, Failure, FailureKind, Result, failed};
use latlab_sys::process::{self, Running};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program of the system, with untranslated messages.
pub(super) fn tool(program: &str) -> Command {
    let mut command = process::command(program);
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// The output of a program that answers at once. If it fails, its first error message.
pub(super) fn ask(command: &mut Command) -> Result<String> {
    let output = process::output(command).map_err(|e| missing(command, &e))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(said(&output.stdout));
    }
    let why = first_error(&said(&output.stderr)).unwrap_or_else(|| output.status.to_string());
    Err(failed(&command.get_program().to_string_lossy(), why))
}

/// The first error among apt's messages: the last one often says only that there were some.
pub(super) fn first_error(messages: &str) -> Option<String> {
    let error = messages.lines().find_map(|line| line.strip_prefix("E: "))?;
    Some(error.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Runs a program to its end, at low priority. Its output goes to `log`; `look` is called meanwhile.
pub(super) fn run(
    command: &Command,
    log: &Path,
    progress: &mut dyn Progress,
    look: &mut dyn FnMut(&mut dyn Progress),
) -> Result<()> {
    let path = log.display().to_string();
    let file = File::options().append(true).create(true).open(log);
    let file = file.context(&path)?;
    let twin = file.try_clone().context(&path)?;
    let name = command.get_program().to_string_lossy().into_owned();
    if !is_there(&name) {
        return Err(missing(command, &ErrorKind::NotFound.into()));
    }
    let mut tied = tied(command);
    tied.stdout(twin).stderr(file);
    let mut running = Running::start(&mut tied).map_err(|e| missing(&tied, &e))?;
    loop {
        let status = running.child().try_wait().context(&name)?;
        match status {
            Some(status) if status.success() => return Ok(()),
            // Ctrl-C reaches the program too, and it may end first.
            _ if progress.pause() => return Err(interrupted()),
            Some(status) => return Err(complaint(&name, log, &status.to_string())),
            None => look(progress),
        }
    }
}

/// The same command in a process group that dies with latlab: compilers and decompressors are not
/// our children, so a shell that waits until our end of a pipe is closed kills the group.
fn tied(command: &Command) -> Command {
    const TIED: &str = "exec 3<&0; { read -r _ <&3; kill -KILL 0; } & \
                        exec nice -n 10 \"$@\" 3<&- </dev/null";
    let mut tied = tool("sh");
    tied.stdin(Stdio::piped()).process_group(0);
    if let Some(folder) = command.get_current_dir() {
        tied.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => tied.env(name, value),
            None => tied.env_remove(name),
        };
    }
    tied.arg("-c").arg(TIED).arg("sh").arg(command.get_program()).args(command.get_args());
    tied
}

/// `make` for an architecture with these arguments. User, host and time of the build are fixed, so
/// that builds are reproducible.
pub(super) fn make(tree: &Path, arch: &Arch, words: &[&str]) -> Command {
    let mut command = tool("make");
    command.current_dir(tree);
    for name in ["MAKEFLAGS", "MFLAGS", "CROSS_COMPILE", "LLVM", "KBUILD_OUTPUT", "KCFLAGS"] {
        command.env_remove(name);
    }
    command.env("KBUILD_BUILD_TIMESTAMP", "2020-01-01");
    command.env("KBUILD_BUILD_USER", "latlab").env("KBUILD_BUILD_HOST", "lab");
    let here = format!("-ffile-prefix-map={}=.", tree.display());
    command.arg(format!("ARCH={}", arch.kbuild)).args(words);
    command.arg(format!("KCFLAGS={here}")).arg(format!("KAFLAGS={here}"));
    command
}

/// Fails if a command or header needed to build `what` is missing; `tools` pairs each with its
/// Debian package.
pub(super) fn check_tools(what: &str, tools: &[(&str, &str)]) -> Result<()> {
    let missing = tools.iter().filter(|(tool, _)| !is_there(tool));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    Err(Failure::unsupported(format!(
        "to build {what}, install the missing packages: apt-get install {}",
        packages.join(" ")
    )))
}

/// Whether a header, or a command in PATH, exists.
fn is_there(what: &str) -> bool {
    if what.starts_with('/') {
        return Path::new(what).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(what).is_file())
}

/// The log of a build, kept even if it fails.
pub(super) fn log_file(name: &str) -> Result<PathBuf> {
    let logs = cache()?.join("logs");
    std::fs::create_dir_all(&logs).at(&logs)?;
    let log = logs.join(format!("{name}.log"));
    File::create(&log).at(&log)?;
    Ok(log)
}

/// Error messages that mean "wrong tool version": the compiler does not know an option, or the
/// dynamic loader finds a program that was linked with a newer glibc.
const NEWER: [&str; 2] = ["unrecognized command-line option", "version `GLIBC_"];

/// Shows the end of a failed build's log, and its path.
pub(super) fn explain(
    what: &str,
    log: &Path,
    failure: Failure,
    progress: &mut dyn Progress,
) -> Failure {
    const LINES: usize = 12;
    if failure.kind != FailureKind::Failed {
        return failure;
    }
    let said = std::fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let log = log.display();
    if NEWER.iter().any(|words| said.contains(words)) {
        return Failure::unsupported(format!(
            "{what} can't be built here: the kernel's headers are made for a newer compiler or C \
             library than this machine has; see {log}"
        ));
    }
    progress.note(&format!("the end of {log}:\n{}", last.join("\n")));
    Failure::failed(format!("{what} could not be built: {failure}; see {log}"))
}

/// The failure when the user asked to end.
pub(super) fn interrupted() -> Failure {
    Failure::cut_short("ended on request: nothing was changed")
}

/// The program's last error message, else its exit status.
fn complaint(name: &str, log: &Path, status: &str) -> Failure {
    let said = std::fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let last = said.lines().rev().find(|line| line.starts_with("E: "));
    let last = last.or_else(|| said.lines().rev().find(|line| !line.trim().is_empty()));
    let words = last.map_or(status, |line| line.trim_start_matches("E: ").trim());
    Failure::failed(format!("{name}: {words}"))
}

fn missing(command: &Command, error: &std::io::Error) -> Failure {
    let name = command.get_program().to_string_lossy();
    if error.kind() == ErrorKind::NotFound {
        return Failure::unsupported(format!("{name} is not installed"));
    }
    failed(&name, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_sys::file;
    use latlab_testing::wait_at_most;
    use std::time::Duration;

    /// Number of running processes of the group.
    fn at_work(group: u32) -> usize {
        let stat =
            |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
        let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(stat);
        let state_and_group = processes.filter_map(|stat| {
            // The name in parentheses may contain anything.
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            Some((fields.next()?.to_owned(), fields.nth(1)?.to_owned()))
        });
        state_and_group.filter(|(state, of)| *of == group.to_string() && state != "Z").count()
    }

    fn wait_until_work(processes: usize, group: u32) {
        let what = format!("{processes} processes of the group work");
        wait_at_most(Duration::from_mins(1), &what, || at_work(group) == processes);
    }

    #[test]
    fn make_and_its_children_end_when_latlab_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let rules = b"bzImage:\n\tsleep 1000 & sleep 1000\n";
        file::write_atomically(&folder.path().join("Makefile"), rules).unwrap();
        let start = || {
            let mut command = tied(&make(folder.path(), Arch::own(), &["bzImage"]));
            let mut running = Running::start(command.stdout(Stdio::null())).unwrap();
            let group = running.child().id();
            // make, its shell, two sleeps, and the shell that waits for our end.
            wait_until_work(5, group);
            (running, group)
        };
        let (mut running, group) = start();
        // As the kernel closes the pipes of a killed process.
        drop(running.child().stdin.take());
        wait_until_work(0, group);
        let (running, group) = start();
        drop(running);
        wait_until_work(0, group);
    }
}
