//! A window of a user's program: between two marks that it writes, or its whole run.

use super::{Call, Stage};
use crate::call::window::{CONSUMER_PRIORITY, MARK_READER_PRIORITY, Window};
use latlab_core::time::Nanos;
use latlab_part::part::{About, Describe};
use latlab_sys::process::{self, Running};
use latlab_sys::sched::Policy;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

/// Runs a program with marks around the part to be scanned: latlab scan -- COMMAND.
///
/// The variable LATLAB_SCAN holds the number of an open descriptor. The program writes "b" to it
/// when its window begins and "e" when the window ends, once or many times. It is started again
/// when it has ended. It runs with the priority and on the CPU of the Consumer. At each "b" it is
/// stopped for 150 us, and the window begins when it continues.
///
/// With window=run, the window is a whole run of the program, which needs no marks: from execve(2) to its
/// end and waitpid(2).
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Program {
    /// The program and its arguments
    #[arg(long, required = true)]
    command: Vec<String>,
    /// What is scanned: the part between marks, or the whole run
    #[arg(long, default_value = "marks")]
    #[serde(default)]
    window: Scanned,
}

/// The part of a program that is scanned.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
enum Scanned {
    #[default]
    Marks,
    Run,
}

/// Environment variable with the number of the descriptor for marks.
const VARIABLE: &str = "LATLAB_SCAN";
/// Longest time until the next mark of a program.
const PATIENCE: Duration = Duration::from_secs(8);

impl Describe for Program {
    const ABOUT: About =
        About { name: "program", summary: "a window of a program: latlab scan -- COMMAND" };
}

impl Call for Program {
    fn command(&self) -> Option<Vec<String>> {
        Some(self.command.clone())
    }

    /// Higher than the program's priority, so that the program does not run on between its mark and
    /// the window.
    fn priority(&self) -> u32 {
        match self.window {
            Scanned::Marks => MARK_READER_PRIORITY,
            Scanned::Run => CONSUMER_PRIORITY,
        }
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(match self.window {
            Scanned::Marks => {
                Box::new(ProgramStage { command: self.command.clone(), process: None })
            }
            Scanned::Run => Box::new(RunStage::new(&self.command)?),
        })
    }
}

/// Whole runs of the program.
struct RunStage {
    program: OsString,
    arguments: Vec<OsString>,
}

impl RunStage {
    fn new(words: &[String]) -> io::Result<RunStage> {
        let not_found = || io::Error::other(format!("{}: program not found", words[0]));
        let program = process::find(OsStr::new(&words[0])).ok_or_else(not_found)?.into_os_string();
        Ok(RunStage { program, arguments: words[1..].iter().map(OsString::from).collect() })
    }
}

impl Stage for RunStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let child = window.single().fork(|| {
            let failed = match process::silence().and_then(|()| window.enter()) {
                Ok(()) => process::exec_program(&self.program, &self.arguments),
                Err(failed) => failed,
            };
            // Without a message: the parent gets the exit status.
            std::panic::resume_unwind(Box::new(failed));
        })?;
        let program = self.program.display();
        child.wait().map_err(|_| io::Error::other(format!("{program} failed")))?;
        window.leave();
        Ok(())
    }
}

/// The program, started again whenever it has ended.
struct ProgramStage {
    command: Vec<String>,
    process: Option<MarkedProcess>,
}

/// A process of the program.
struct MarkedProcess {
    running: Running,
    marks: UnixStream,
    /// Whether it is inside its window, by its last mark.
    inside: bool,
    /// Whether it has written any mark.
    marked: bool,
}

/// A mark that the program writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Begin,
    End,
}

impl Stage for ProgramStage {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let mut process = self.process_at_window()?;
        window.enter()?;
        if process.await_mark()?.is_none() {
            let (program, status) = (&self.command[0], process.wait()?);
            return Err(io::Error::other(format!("{program} ended within its window ({status})")));
        }
        window.leave();
        self.process = Some(process);
        Ok(())
    }
}

impl ProgramStage {
    /// A process that has just written the mark that begins its window.
    fn process_at_window(&mut self) -> io::Result<MarkedProcess> {
        let start = || MarkedProcess::start(&self.command);
        let mut process = self.process.take().map_or_else(start, Ok)?;
        process.skip_marks()?;
        loop {
            match process.await_mark()? {
                Some(Mark::Begin) => return Ok(process),
                Some(Mark::End) => {}
                None => {
                    let (marked, status) = (process.marked, process.wait()?);
                    self.check_end(marked, status)?;
                    process = MarkedProcess::start(&self.command)?;
                }
            }
        }
    }

    /// Fails if the program failed or wrote no mark.
    fn check_end(&self, marked: bool, status: ExitStatus) -> io::Result<()> {
        let program = &self.command[0];
        let why = match (status.success(), marked) {
            (true, true) => return Ok(()),
            (true, false) => format!("{program} ended without a mark: {}", how_to_mark()),
            (false, _) => format!("{program} failed ({status})"),
        };
        Err(io::Error::other(why))
    }
}

fn how_to_mark() -> String {
    format!(
        "it has to call int fd = atoi(getenv(\"{VARIABLE}\")); write(fd, \"b\", 1) before its \
         window and write(fd, \"e\", 1) after it; --whole scans its whole run instead"
    )
}

impl MarkedProcess {
    fn start(words: &[String]) -> io::Result<MarkedProcess> {
        let (marks, theirs) = UnixStream::pair()?;
        marks.set_read_timeout(Some(PATIENCE))?;
        let mut command = process::command(&words[0]);
        let number = process::inherit(&mut command, &theirs);
        process::schedule(&mut command, Policy::Fifo(CONSUMER_PRIORITY));
        command.args(&words[1..]).env(VARIABLE, number.to_string());
        // stdout is for the result of the scan.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let running = Running::start(&mut command)
            .map_err(|e| io::Error::other(format!("{} can't be started ({e})", words[0])))?;
        Ok(MarkedProcess { running, marks, inside: false, marked: false })
    }

    /// Skips the marks written so far, while no window was open.
    fn skip_marks(&mut self) -> io::Result<()> {
        self.marks.set_nonblocking(true)?;
        let skipped = loop {
            match self.next() {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        self.marks.set_nonblocking(false)?;
        skipped
    }

    /// Waits for the next mark. Returns none if the program has ended or closed its descriptor.
    fn await_mark(&mut self) -> io::Result<Option<Mark>> {
        self.next().map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => {
                let why = format!("no mark within {PATIENCE:?}: {}", how_to_mark());
                io::Error::new(io::ErrorKind::TimedOut, why)
            }
            _ => e,
        })
    }

    /// Reads the next mark.
    fn next(&mut self) -> io::Result<Option<Mark>> {
        let mut byte = [0];
        if self.marks.read(&mut byte)? == 0 {
            return Ok(None);
        }
        let mark = match (byte[0], self.inside) {
            (b'b', false) => Mark::Begin,
            (b'e', true) => Mark::End,
            (other, inside) => {
                let awaited = if inside { 'e' } else { 'b' };
                let other = other.escape_ascii();
                let why = format!("'{other}' was written instead of the mark '{awaited}'");
                return Err(io::Error::other(why));
            }
        };
        (self.inside, self.marked) = (mark == Mark::Begin, true);
        Ok(Some(mark))
    }

    /// Waits for the end of the process, which may only have closed its descriptor, up to 8 s.
    fn wait(mut self) -> io::Result<ExitStatus> {
        self.running.wait_for(Nanos::from_secs(8))
    }
}
