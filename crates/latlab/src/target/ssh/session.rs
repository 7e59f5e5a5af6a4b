//! One connection of OpenSSH's client: what goes in, and what comes out line by line.

use super::super::Errand;
use super::host::Host;
use crate::failure::{Failure, Result, failed};
use latlab_core::time::Nanos;
use latlab_sys::process::{self, Running};
use latlab_sys::terminal::Settings;
use latlab_sys::{clock, signal};
use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::Duration;

/// What is the case with the far side.
pub(super) enum Heard {
    /// It says this.
    Line(String),
    /// The user here wants to end.
    RequestToEnd,
    /// Nothing more will come, for this reason.
    Nothing(String),
}

/// A line from one of the client's two pipes.
enum Line {
    Said(String),
    /// On stderr: the client's own words, or those of who works there.
    Complained(String),
}

/// An OpenSSH client at work. Dropping it ends it.
pub(super) struct Session {
    client: Running,
    /// Put back after the client has ended, for that may be in the middle of a question.
    _terminal: Settings,
    /// What is to be written to its stdin, which is closed when this is gone.
    input: Option<Sender<Vec<u8>>>,
    lines: Receiver<Line>,
    complaints: VecDeque<String>,
    host: String,
    deadline: Nanos,
}

/// However much is complained of, the last words say why.
const COMPLAINTS: usize = 20;

/// How the client is to behave whatever the user's configuration says. The connection is our own
/// and ends with us; a dead one is noticed within 15 s, which a busy board still answers in.
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

impl Session {
    /// Connects, and has a shell there run `script`, in which there is no single quote. After
    /// `limit` nothing more is heard.
    pub(super) fn open(host: &Host, script: &str, limit: Option<Nanos>) -> Result<Session> {
        let mut command = process::sheltered("ssh");
        configure(&mut command);
        // The login shell may be any.
        command.args(host.words()).arg(format!("exec sh -c '{script}'"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let terminal = Settings::keep();
        let mut client = Running::start(&mut command).map_err(|e| unable(&e))?;
        let child = client.child();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            unreachable!("all three were asked for");
        };
        let ((input, chunks), (tell, lines)) = (mpsc::channel(), mpsc::channel());
        thread(move || write(stdin, &chunks))?;
        let complain = tell.clone();
        thread(move || read(stdout, Line::Said, tell))?;
        thread(move || read(stderr, Line::Complained, complain))?;
        Ok(Session {
            client,
            _terminal: terminal,
            input: Some(input),
            lines,
            complaints: VecDeque::new(),
            host: host.to_string(),
            deadline: limit.map_or(Nanos::MAX, |limit| clock::now() + limit),
        })
    }

    /// Sends something, and does not wait until it has gone. Where nobody takes it any more,
    /// [`Session::hear`] will tell.
    pub(super) fn send(&mut self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ = input.send(bytes);
        }
    }

    /// Sends one word.
    pub(super) fn send_word(&mut self, word: &str) {
        self.send(format!("{word}\n").into_bytes());
    }

    /// Waits for what comes next.
    pub(super) fn hear(&mut self, errand: &mut Errand<'_>) -> Heard {
        loop {
            match self.next_line() {
                Ok(Line::Said(line)) => return Heard::Line(line),
                Ok(Line::Complained(line)) => {
                    errand.watch.note(&format!("{}: {line}", self.host));
                    self.complain(line);
                }
                Err(TryRecvError::Disconnected) => return Heard::Nothing(self.last_complaint()),
                Err(TryRecvError::Empty) if clock::now() >= self.deadline => {
                    self.kill();
                    return Heard::Nothing("the time of --limit is over".to_owned());
                }
                Err(TryRecvError::Empty) => {
                    if errand.pause(errand.watch.pace()) {
                        return Heard::RequestToEnd;
                    }
                }
            }
        }
    }

    /// Notes what may be the reason if nothing more comes.
    pub(super) fn complain(&mut self, line: String) {
        if self.complaints.len() == COMPLAINTS {
            self.complaints.pop_front();
        }
        self.complaints.push_back(line);
    }

    /// What was complained of last: why it went wrong.
    pub(super) fn last_complaint(&self) -> String {
        self.complaints.back().cloned().unwrap_or_else(|| "ssh ended without a word".to_owned())
    }

    /// All that was complained of.
    pub(super) fn complaints(&mut self) -> impl Iterator<Item = String> {
        self.complaints.drain(..)
    }

    /// What was said on stderr until now has done no harm.
    pub(super) fn forget_complaints(&mut self) {
        self.complaints.clear();
    }

    /// Breaks the connection off.
    pub(super) fn kill(&mut self) {
        // What can't be killed has ended.
        let _ = self.client.kill();
    }

    /// Waits until the far side has ended by itself, which it does when its stdin is closed.
    pub(super) fn close(mut self, errand: &mut Errand<'_>) {
        const PATIENCE: Nanos = Nanos::from_secs(5);
        self.input = None;
        self.deadline = clock::now() + PATIENCE;
        while !matches!(self.hear(errand), Heard::Nothing(_)) {}
    }

    fn next_line(&mut self) -> std::result::Result<Line, TryRecvError> {
        // Somebody else, such as a command that ssh connects through, may keep its pipes open.
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
        // In a script nobody would answer.
        command.args(["-o", "BatchMode=yes"]);
    }
}

fn unable(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::Unsupported(
            "there is no ssh here: install it with apt-get install openssh-client".to_owned(),
        ),
        _ => failed("ssh can't be started", error),
    }
}

fn thread(life: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("ssh".to_owned()).spawn(life);
    thread.map(drop).map_err(|e| failed("a thread could not be started", e))
}

fn write(mut to: ChildStdin, chunks: &Receiver<Vec<u8>>) {
    for chunk in chunks {
        if to.write_all(&chunk).is_err() {
            return;
        }
    }
}

/// Hands on what is read line by line, and wakes who waits for it. So does the end.
fn read(pipe: impl Read, kind: fn(String) -> Line, to: Sender<Line>) {
    for line in BufReader::new(pipe).split(b'\n').map_while(io::Result::ok) {
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        let wanted = line.is_empty() || to.send(kind(line)).is_ok();
        if !wanted {
            return;
        }
        signal::tell();
    }
    drop(to);
    signal::tell();
}
