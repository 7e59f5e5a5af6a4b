//! One connection of the OpenSSH client: bytes in, lines out.

use super::host::Host;
use latlab_core::time::Nanos;
use latlab_measure::message::LONGEST_LINE;
use latlab_measure::message::complaint::{self, COMPLAINTS, cut};
use latlab_measure::session::Session;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::process::{self, Running};
use latlab_sys::terminal::Settings;
use latlab_sys::{clock, signal};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TryRecvError};
use std::time::Duration;

/// The next event of a connection.
pub(super) enum Event {
    /// A line on the client's stdout.
    Line(String),
    /// The user here asked to end.
    RequestToEnd,
    /// The connection is closed, for this reason.
    Closed(String),
}

/// A line from one of the client's two pipes.
enum Line {
    Stdout(String),
    /// Written by the client, or by programs on the host.
    Stderr(String),
}

/// A running OpenSSH client. Dropping it ends it.
pub(super) struct Connection {
    client: Running,
    /// Restored after the client has ended, which may be while it asks for a password.
    _terminal: Settings,
    /// Bytes for its stdin, which is closed when this is dropped.
    input: Option<Sender<Vec<u8>>>,
    lines: Receiver<Line>,
    complaints: VecDeque<String>,
    host: String,
    deadline: Nanos,
}

/// Number of lines that may wait to be read; then the host waits. Each may be as long as the longest.
const WAITING: usize = 1;

/// Options that override the user's configuration. The connection is not shared, and ends with
/// latlab; a dead one is noticed within 15 s, within which even a busy host answers.
const OPTIONS: &[&str] = &[
    "ControlPath=none",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "ConnectTimeout=15",
    "ServerAliveInterval=3",
    "ServerAliveCountMax=5",
];

impl Connection {
    /// Connects and runs `script`, which must not contain a single quote, in a shell on the host.
    /// After `limit` the connection is closed.
    pub(super) fn open(host: &Host, script: &str, limit: Option<Nanos>) -> Result<Connection> {
        let mut command = process::command_ignoring_signals("ssh");
        configure(&mut command);
        // The login shell may be any shell.
        command.args(host.words()).arg(format!("exec sh -c '{script}'"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let terminal = Settings::keep();
        let mut client = Running::start(&mut command).map_err(|e| unable(&e))?;
        let child = client.child();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            unreachable!("all three were asked for");
        };
        let ((input, chunks), (tell, lines)) = (mpsc::channel(), mpsc::sync_channel(WAITING));
        thread(move || write(stdin, &chunks))?;
        let complain = tell.clone();
        let next = |pipe: &mut BufReader<_>| next_line(pipe, LONGEST_LINE);
        thread(move || read(stdout, next, Line::Stdout, tell))?;
        thread(move || read(stderr, next_complaint, Line::Stderr, complain))?;
        Ok(Connection {
            client,
            _terminal: terminal,
            input: Some(input),
            lines,
            complaints: VecDeque::new(),
            host: host.to_string(),
            deadline: limit.map_or(Nanos::MAX, |limit| clock::now() + limit),
        })
    }

    /// Queues bytes for the host. If nobody reads them any more, [`Connection::next`] reports it.
    pub(super) fn send(&mut self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ = input.send(bytes);
        }
    }

    /// Queues one word on a line of its own.
    pub(super) fn send_word(&mut self, word: &str) {
        self.send(format!("{word}\n").into_bytes());
    }

    /// Waits for the next event. The limit and a request to end come before lines: a host may send
    /// lines faster than they are read.
    pub(super) fn next(&mut self, session: &mut Session<'_>) -> Event {
        let mut wait = Nanos(0);
        loop {
            if session.pause(wait) {
                return Event::RequestToEnd;
            }
            if clock::now() >= self.deadline {
                self.kill();
                return Event::Closed("the time limit (--limit) has passed".to_owned());
            }
            wait = Nanos(0);
            match self.next_line() {
                Ok(Line::Stdout(line)) => return Event::Line(line),
                Ok(Line::Stderr(line)) => {
                    session.watch.note(&format!("{}: {line}", self.host));
                    self.complain(line);
                }
                Err(TryRecvError::Disconnected) => return Event::Closed(self.last_complaint()),
                Err(TryRecvError::Empty) => wait = session.watch.pace(),
            }
        }
    }

    /// Keeps a line that may explain why the connection is closed.
    pub(super) fn complain(&mut self, line: String) {
        if self.complaints.len() == COMPLAINTS {
            self.complaints.pop_front();
        }
        self.complaints.push_back(cut(line));
    }

    /// The last complaint: usually the reason. sshd may complain about the home before or after the
    /// login shell speaks, on another pipe; that ends no connection.
    pub(super) fn last_complaint(&self) -> String {
        const HOME: &str = "Could not chdir to home directory";
        let mut last = self.complaints.iter().rev();
        let reason = last.find(|line| !line.starts_with(HOME)).or(self.complaints.back());
        reason.cloned().unwrap_or_else(|| "ssh ended without a message".to_owned())
    }

    /// The last lines of stderr.
    pub(super) fn complaints(&mut self) -> impl Iterator<Item = String> {
        self.complaints.drain(..)
    }

    /// Drops the lines of stderr until now: they were harmless.
    pub(super) fn forget_complaints(&mut self) {
        self.complaints.clear();
    }

    /// Closes the connection now.
    pub(super) fn kill(&mut self) {
        // A client that can't be killed has ended.
        let _ = self.client.kill();
    }

    /// Closes the host's stdin and waits until it has ended by itself.
    pub(super) fn close(mut self, session: &mut Session<'_>) {
        const PATIENCE: Nanos = Nanos::from_secs(5);
        self.input = None;
        self.deadline = clock::now() + PATIENCE;
        while !matches!(self.next(session), Event::Closed(_)) {}
    }

    fn next_line(&mut self) -> std::result::Result<Line, TryRecvError> {
        // Another process, such as a ProxyCommand, may keep the pipes open.
        const LINGER: Duration = Duration::from_secs(1);
        if matches!(self.client.child().try_wait(), Ok(None)) {
            return self.lines.try_recv();
        }
        self.lines.recv_timeout(LINGER).map_err(|_| TryRecvError::Disconnected)
    }
}

fn configure(command: &mut Command) {
    command.args(OPTIONS.iter().flat_map(|option| ["-o", option]));
    if !io::stdin().is_terminal() {
        // In a script nobody answers a question.
        command.args(["-o", "BatchMode=yes"]);
    }
}

fn unable(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::unsupported("ssh is not installed: apt-get install openssh-client")
        }
        _ => failed("ssh can't be started", error),
    }
}

fn thread(life: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("ssh".to_owned()).spawn(life);
    thread.map(drop).context("a thread could not be started")
}

fn write(mut to: ChildStdin, chunks: &Receiver<Vec<u8>>) {
    for chunk in chunks {
        if to.write_all(&chunk).is_err() {
            return;
        }
    }
}

/// Forwards a pipe line by line and wakes the waiting thread, also at its end. Where `next` fails, as after
/// a line of stdout that is too long, it is closed, and the client ends.
fn read<P: Read>(
    pipe: P,
    next: impl Fn(&mut BufReader<P>) -> io::Result<Option<String>>,
    kind: fn(String) -> Line,
    to: SyncSender<Line>,
) {
    let mut pipe = BufReader::new(pipe);
    loop {
        let line = match next(&mut pipe) {
            Ok(Some(line)) if line.is_empty() => continue,
            Ok(Some(line)) => kind(line),
            Ok(None) => break,
            Err(error) => {
                let _ = to.send(Line::Stderr(error.to_string()));
                break;
            }
        };
        if to.send(line).is_err() {
            return;
        }
        signal::notify();
    }
    drop(to);
    signal::notify();
}

/// The next line without its end. None at the end of the pipe. An error for a line of `longest`
/// bytes or more: the pipe can't be read after it.
pub fn next_line(pipe: &mut impl BufRead, longest: u64) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = pipe.by_ref().take(longest).read_until(b'\n', &mut line)?;
    if read as u64 == longest && line.last() != Some(&b'\n') {
        return Err(io::Error::other("it sent a line that is longer than any record"));
    }
    Ok((read > 0).then(|| text(line)))
}

/// The next line of stderr without its end, cut. None at the end of the pipe.
fn next_complaint(pipe: &mut impl BufRead) -> io::Result<Option<String>> {
    /// In bytes; no character has more than four.
    const LONGEST: u64 = 4 * complaint::LONGEST as u64;
    let mut line = Vec::new();
    let read = pipe.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
    if read as u64 == LONGEST && line.last() != Some(&b'\n') {
        pipe.skip_until(b'\n')?;
    }
    Ok((read > 0).then(|| cut(text(line))))
}

/// The text of a line without its end.
fn text(line: Vec<u8>) -> String {
    // A long line is not copied, unless it is not UTF-8.
    let lossy = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
    let mut text = String::from_utf8(line).unwrap_or_else(|error| lossy(error.as_bytes()));
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_longer_than_any_record_is_an_error() {
        let mut pipe = BufReader::new(b"one\ntwo \r\n\nlast".chain(io::repeat(b'x')));
        let mut next = || next_line(&mut pipe, 1_000);
        let lines = [next(), next(), next()].map(|line| line.unwrap().unwrap());
        assert_eq!(lines, ["one", "two", ""]);
        assert!(next().unwrap_err().to_string().contains("longer than any record"));
        let mut last = &b"the end"[..];
        assert_eq!(next_line(&mut last, 1_000).unwrap().as_deref(), Some("the end"));
        assert_eq!(next_line(&mut last, 1_000).unwrap(), None);
    }

    #[test]
    fn complaint_is_cut_and_the_next_one_is_read() {
        let long = "é".repeat(100_000);
        let pipe = format!("{}\n{long}\nPermission denied \r\n", "x".repeat(complaint::LONGEST));
        let mut pipe = BufReader::with_capacity(1 << 10, pipe.as_bytes());
        let mut next = || next_complaint(&mut pipe).unwrap();
        assert_eq!(next(), Some("x".repeat(complaint::LONGEST)));
        assert_eq!(next(), Some(format!("{} …", "é".repeat(complaint::LONGEST))));
        assert_eq!(next().as_deref(), Some("Permission denied"));
        assert_eq!(next(), None);
    }
}
