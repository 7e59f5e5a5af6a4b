//! Options of the commands that start a program elsewhere.

use super::target_options::TargetOptions;
use super::{complete, rights};
use crate::target::{self, Target};
use latlab_core::time::Nanos;
use latlab_format::live;
use latlab_format::progress::Bar;
use latlab_lab::{Program, Variables};
use latlab_measure::session::{Output, Session};
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_part::progress::Stream;
use latlab_sys::signal::Signals;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

/// Receives the program's output.
pub(super) type Reader<'a> = dyn FnMut(Stream, &[u8]) -> io::Result<()> + 'a;

/// Exit code of a program that is ended because nobody reads its output any more: the same as for
/// SIGPIPE in a shell.
const UNREAD: u8 = 128 + 13;

/// The options.
#[derive(Debug, clap::Args)]
pub(super) struct GuestProgram {
    /// Run the program in a guest: lab:PROFILE or vm:PROFILE (see: latlab list profiles); latlab
    /// check also on another machine: ssh:HOST
    #[arg(long, value_name = "TARGET", add = complete::targets())]
    pub(super) on: Option<String>,
    /// Copy this file or folder into the guest; the program's libraries are copied automatically
    #[arg(long, value_name = "PATH", requires = "on")]
    with: Vec<PathBuf>,
    /// Working directory in the guest [default: /]
    #[arg(long, value_name = "DIR", requires = "on")]
    chdir: Option<PathBuf>,
    /// Environment variable in the guest; without =VALUE, its value here is copied
    #[arg(long, value_name = "NAME[=VALUE]", requires = "on")]
    env: Vec<String>,
}

impl GuestProgram {
    /// Runs latlab in the guest with these words, followed by the program's path and its arguments.
    /// `length` is the time to run that the words ask for, if they do. Returns its exit code.
    pub(super) fn run(
        &self,
        words: Vec<String>,
        length: Option<Nanos>,
        command: &[OsString],
        options: &TargetOptions,
        reader: &mut Reader<'_>,
    ) -> Result<u8> {
        let (name, target) = self.target()?;
        let path = Program::locate(&command[0])?;
        let words = with_command(words, path.as_os_str(), &command[1..])?;
        let (folder, variables) = (self.folder()?, self.variables()?);
        let with = self.with.clone();
        let program = Program { words, path, with, folder, variables, length };
        in_session(name, options, reader, |session, output| {
            target.exec(name, &program, session, output)
        })
    }

    /// Runs latlab with these words on another machine, followed by a program of that machine and its
    /// arguments, if there is one. Otherwise as [`run`](GuestProgram::run).
    pub(super) fn run_on_host(
        &self,
        words: Vec<String>,
        command: &[OsString],
        options: &TargetOptions,
        reader: &mut Reader<'_>,
    ) -> Result<u8> {
        let (name, target) = self.target()?;
        if !self.with.is_empty() || self.chdir.is_some() || !self.env.is_empty() {
            return Err(Failure::failed(format!(
                "--with, --chdir and --env are for guests: a program on {name} has the files and \
                 the login folder there"
            )));
        }
        let words = match command.split_first() {
            Some((program, arguments)) => with_command(words, program, arguments)?,
            None => words,
        };
        in_session(name, options, reader, |session, output| {
            target.command(name, words, session, output)
        })
    }

    /// Whether the program is one of another machine.
    pub(super) fn is_on_host(&self) -> bool {
        self.on.as_ref().is_some_and(|name| name.starts_with("ssh:"))
    }

    /// The target, and its name on the command line.
    fn target(&self) -> Result<(&str, &'static dyn Target)> {
        rights::keep(rights::ELSEWHERE)?;
        let name = self.on.as_deref().unwrap_or("native");
        Ok((name, target::find(name)?))
    }

    /// The working directory in the guest.
    fn folder(&self) -> Result<PathBuf> {
        let Some(folder) = &self.chdir else { return Ok("/".into()) };
        std::path::absolute(folder).context("--chdir")
    }

    /// The environment variables of `--env`.
    fn variables(&self) -> Result<Variables> {
        let variable = |text: &String| match text.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => match std::env::var(text) {
                Ok(value) => Ok((text.clone(), value)),
                Err(error) => Err(failed(&format!("--env {text}"), error)),
            },
        };
        self.env.iter().map(variable).collect()
    }
}

fn in_session(
    target: &str,
    options: &TargetOptions,
    reader: &mut Reader<'_>,
    work: impl FnOnce(&mut Session<'_>, &mut Output<'_>) -> Result<u8>,
) -> Result<u8> {
    options.check(target)?;
    let signals = Signals::block().context("signals can't be blocked")?;
    let mut watch = live::view(None);
    let mut bar = Bar::new(&signals);
    let mut unread = false;
    let mut output = |stream, bytes: &[u8]| {
        reader(stream, bytes).map_err(|error| {
            unread |= error.kind() == io::ErrorKind::BrokenPipe;
            // Wrong data are the target's fault; a failure to forward them is this machine's.
            match error.kind() {
                io::ErrorKind::InvalidData => failed(target, error),
                _ => failed("the output of the program can't be forwarded", error),
            }
        })
    };
    let code = work(&mut options.session(&signals, watch.as_mut(), &mut bar), &mut output);
    if unread { Ok(UNREAD) } else { code }
}

/// Appends the program and its arguments.
fn with_command(
    mut words: Vec<String>,
    path: &OsStr,
    arguments: &[OsString],
) -> Result<Vec<String>> {
    words.push("--".to_owned());
    for word in std::iter::once(path).chain(arguments.iter().map(OsString::as_os_str)) {
        let text = word.to_str().ok_or_else(|| {
            Failure::failed(format!(
                "{} is not UTF-8: it can't be passed to another machine",
                word.display()
            ))
        })?;
        words.push(text.to_owned());
    }
    Ok(words)
}
