//! A program on a target: its output is sent as messages while it runs.

use super::{Message, Stream};
use crate::failure::{Result, failed};
use latlab_sys::process::Running;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// How long to wait for output after the program has ended, where its pipes stay open: a process that
/// it left behind may keep them for ever, and the threads that read them may wait for a busy CPU.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Runs a program and sends its output. It is asked to end when `is_ended` returns true. Returns its
/// exit code as a shell reports it.
pub(crate) fn run(
    command: &mut Command,
    to: &mut dyn Write,
    is_ended: &mut dyn FnMut() -> bool,
) -> Result<u8> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let failed_here = |e: io::Error| failed(&name, e);
    let mut running = Running::start(command).map_err(failed_here)?;
    let child = running.child();
    let (sender, messages) = mpsc::channel();
    let outputs = [
        (Stream::Stdout, child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        (Stream::Stderr, child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
    ];
    for (stream, pipe) in outputs {
        let (pipe, sender) = (pipe.expect("it was asked for"), sender.clone());
        std::thread::spawn(move || forward(stream, pipe, &sender));
    }
    drop(sender);
    let mut send = |pause| {
        while let Ok(message) = messages.recv_timeout(pause) {
            message.send(to).map_err(|e| failed("the output can't be sent", e))?;
        }
        Ok(())
    };
    let status = loop {
        send(Duration::from_millis(5))?;
        if let Some(status) = running.child().try_wait().map_err(failed_here)? {
            break status;
        }
        if is_ended() {
            running.ask_to_end();
        }
    };
    send(LAST_OUTPUT)?;
    Ok(code(status))
}

/// Forwards a pipe until all its writers have closed it.
fn forward(stream: Stream, mut pipe: Box<dyn Read + Send>, to: &Sender<Message>) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = pipe.read(&mut bytes) {
        if to.send(Message::output(stream, &bytes[..length])).is_err() {
            return;
        }
    }
}

/// The exit code as a shell reports it: 128 plus the signal's number for a killed program.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}
