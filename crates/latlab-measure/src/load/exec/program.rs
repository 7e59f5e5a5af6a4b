//! A command of the user as a load: it runs until the load ends, and starts again when it ends.

use crate::load::LoadContext;
use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_sys::process::{self, Patience, Running};
use latlab_sys::{clock, start_barrier};
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStderr, ExitStatus, Stdio};

/// A command that fails within this time of its start has failed at once.
const AT_ONCE: Nanos = Nanos::from_millis(200);
/// Longest time between two looks at the command, and at the request to stop.
const PACE: Nanos = Nanos::from_millis(100);

/// A command as it was written, and split into words.
pub(super) struct Program<'a> {
    command: &'a str,
    words: Vec<String>,
}

/// Reads a command: words as in a shell, with its quotation marks and backslashes.
pub(super) fn command(text: &str) -> std::result::Result<String, String> {
    match shlex::split(text) {
        Some(words) if words.is_empty() => Err("it is empty".to_owned()),
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("a quotation mark is not closed in: {text}")),
    }
}

/// Refuses a command whose program does not exist.
pub(super) fn check(load: &str, command: &str) -> Result<()> {
    let words = shlex::split(command).unwrap_or_default();
    let name = words.first().map_or("", String::as_str);
    if process::find(OsStr::new(name)).is_some() {
        return Ok(());
    }
    let place = if name.contains('/') { "" } else { " in PATH" };
    Err(Failure::unsupported(format!("{load}: there is no program '{name}'{place}")))
}

impl<'a> Program<'a> {
    /// The program of a command.
    pub(super) fn of(command: &'a str) -> io::Result<Program<'a>> {
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let words = words.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Program { command, words })
    }

    /// Runs the command until the load is told to stop, again and again. Fails where it does. Each
    /// time, descendants that it has left are killed.
    pub(super) fn repeat(&self, context: &LoadContext) -> io::Result<()> {
        const PATIENCE: Nanos = Nanos::from_secs(1);
        // Otherwise the command would outlive a latlab that is killed.
        process::terminate_with_parent()?;
        process::adopt_orphans()?;
        let mut ended = Ok(());
        while ended.is_ok() && context.running() {
            ended = self.run(context);
            process::kill_children(PATIENCE);
        }
        ended
    }

    /// Runs the command once.
    fn run(&self, context: &LoadContext) -> io::Result<()> {
        const PATIENCE: Nanos = Nanos::from_secs(1);
        let mut running = self.start()?;
        let mut messages = Messages::of(running.child().stderr.take());
        let settled = Patience::with(running.child().id(), AT_ONCE);
        while context.running() {
            messages.read(PACE)?;
            // Processes that the command leaves behind would become zombies and use up the limit on
            // processes.
            process::reap_adopted(running.child().id());
            if let Some(status) = running.child().try_wait()? {
                context.ready_if(status.success());
                return self.ended(status, &mut messages).map(|()| context.done(1));
            }
            context.ready_if(settled.is_over());
        }
        running.end(PATIENCE).map(drop)
    }

    fn start(&self) -> io::Result<Running> {
        let mut command = process::command(&self.words[0]);
        command.args(&self.words[1..]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0);
        let name = &self.words[0];
        Running::start(&mut command).map_err(|e| io::Error::other(format!("{name}: {e}")))
    }

    fn ended(&self, status: ExitStatus, messages: &mut Messages) -> io::Result<()> {
        if status.success() {
            return Ok(());
        }
        messages.read(Nanos(0))?;
        let command = self.command;
        let said = messages.last_lines();
        let said = if said.is_empty() { said } else { format!(": {said}") };
        Err(io::Error::other(format!("'{command}' failed ({status}){said}")))
    }
}

/// A program's output to stderr. The end of it is kept.
struct Messages {
    /// None after its end.
    from: Option<ChildStderr>,
    kept: Vec<u8>,
}

impl Messages {
    fn of(from: Option<ChildStderr>) -> Messages {
        Messages { from, kept: Vec::new() }
    }

    /// Reads what there is, and waits for it at most this long.
    fn read(&mut self, patience: Nanos) -> io::Result<()> {
        const KEPT: usize = 4096;
        let Some(from) = &mut self.from else {
            // It has closed its stderr, most likely because it ends.
            clock::sleep_for(Nanos(patience.0.min(1_000_000)));
            return Ok(());
        };
        if !start_barrier::readable(from, Some(patience))? {
            return Ok(());
        }
        let mut chunk = [0; KEPT];
        let length = from.read(&mut chunk)?;
        if length == 0 {
            self.from = None;
        }
        self.kept.extend(&chunk[..length]);
        self.kept.drain(..self.kept.len().saturating_sub(KEPT));
        Ok(())
    }

    /// The last three lines, as one.
    fn last_lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join("; ")
    }
}
