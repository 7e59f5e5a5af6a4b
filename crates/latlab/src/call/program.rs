//! A window of a program of the user's, between two marks that it writes.

use super::{Call, Stage};
use crate::registry::About;
use crate::window::{CONSUMER, MARKS, Window};
use latlab_core::time::Nanos;
use latlab_sys::process::{self, Running};
use latlab_sys::sched::Policy;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

/// What a program does between two marks: latlab scan -- COMMAND starts it.
///
/// It finds the number of an open descriptor in the variable LATLAB_SCAN, writes "b" there when its
/// window begins and "e" when it ends, once or many times, and is started again when it has ended.
/// It runs with the priority and on the CPU of the one who makes calls. At each "b" it is held for
/// 150 us, and the window begins when it is let go.
#[derive(Clone, Debug, clap::Args, serde::Serialize, serde::Deserialize)]
pub(super) struct Program {
    /// The program and its arguments
    #[arg(long, required = true)]
    command: Vec<String>,
}

/// The variable in which a program finds the number of the descriptor for its marks.
const VARIABLE: &str = "LATLAB_SCAN";
/// How long a program may take until its next mark.
const PATIENCE: Duration = Duration::from_secs(8);

impl Call for Program {
    const ABOUT: About =
        About { name: "program", summary: "a window of a program: latlab scan -- COMMAND" };

    /// Above the program itself, so that nothing of it runs between its mark and our hearing it.
    fn priority(&self) -> u32 {
        MARKS
    }

    fn stage(&self) -> io::Result<Box<dyn Stage>> {
        Ok(Box::new(Runs { command: self.command.clone(), run: None }))
    }
}

/// The program, run again and again.
struct Runs {
    command: Vec<String>,
    run: Option<Run>,
}

/// One run of it.
struct Run {
    program: Running,
    marks: UnixStream,
    /// Where it is, by its last mark.
    inside: bool,
    /// Whether it has given any mark.
    marked: bool,
}

/// What a program may write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Begin,
    End,
}

impl Stage for Runs {
    fn play(&mut self, window: &Window) -> io::Result<()> {
        let mut run = self.at_its_window()?;
        window.enter()?;
        if run.await_mark()?.is_none() {
            let (program, status) = (&self.command[0], run.ended()?);
            return Err(io::Error::other(format!("{program} ended within its window ({status})")));
        }
        window.leave();
        self.run = Some(run);
        Ok(())
    }
}

impl Runs {
    /// A run that has just given the mark that begins its window.
    fn at_its_window(&mut self) -> io::Result<Run> {
        let mut run = self.run.take().map_or_else(|| Run::start(&self.command), Ok)?;
        // What it wrote while nobody listened is past.
        run.catch_up()?;
        loop {
            match run.await_mark()? {
                Some(Mark::Begin) => return Ok(run),
                Some(Mark::End) => {}
                None => {
                    let (marked, status) = (run.marked, run.ended()?);
                    self.refuse(marked, status)?;
                    run = Run::start(&self.command)?;
                }
            }
        }
    }

    /// Refuses a run that went wrong or gave no mark.
    fn refuse(&self, marked: bool, status: ExitStatus) -> io::Result<()> {
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
        "it has to do int fd = atoi(getenv(\"{VARIABLE}\")); write(fd, \"b\", 1) before its \
         window and write(fd, \"e\", 1) after it"
    )
}

impl Run {
    fn start(words: &[String]) -> io::Result<Run> {
        let (marks, theirs) = UnixStream::pair()?;
        marks.set_read_timeout(Some(PATIENCE))?;
        let mut command = process::tied(&words[0]);
        let number = process::inherit(&mut command, &theirs);
        process::schedule(&mut command, Policy::Fifo(CONSUMER));
        command.args(&words[1..]).env(VARIABLE, number.to_string());
        // What a scan gives goes to stdout, and the program is started often.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let program = Running::start(&mut command)
            .map_err(|e| io::Error::other(format!("{} can't be started ({e})", words[0])))?;
        Ok(Run { program, marks, inside: false, marked: false })
    }

    /// Reads what it has written already.
    fn catch_up(&mut self) -> io::Result<()> {
        self.marks.set_nonblocking(true)?;
        let caught_up = loop {
            match self.next() {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        self.marks.set_nonblocking(false)?;
        caught_up
    }

    /// Waits for its next mark; none when it has ended, or given its descriptor up.
    fn await_mark(&mut self) -> io::Result<Option<Mark>> {
        self.next().map_err(|e| match e.kind() {
            io::ErrorKind::WouldBlock => {
                let why = format!("no mark came within {PATIENCE:?}: {}", how_to_mark());
                io::Error::new(io::ErrorKind::TimedOut, why)
            }
            _ => e,
        })
    }

    /// Reads its next mark.
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
                let why = format!("'{other}' was written where the mark '{awaited}' belongs");
                return Err(io::Error::other(why));
            }
        };
        (self.inside, self.marked) = (mark == Mark::Begin, true);
        Ok(Some(mark))
    }

    /// How it ended. One that only gave its descriptor up is waited for, but not for ever.
    fn ended(mut self) -> io::Result<ExitStatus> {
        self.program.wait_for(Nanos::from_secs(8))
    }
}
