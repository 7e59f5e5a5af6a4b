//! `latlab agent`: carries out a plan or a command on an ssh: target, where latlab starts it.

use super::block_signals;
use super::rights;
use latlab_core::machine::TimeDomain;
use latlab_core::plan::Plan;
use latlab_core::time::Nanos;
use latlab_measure::engine::{self, Outcome, Prepared};
use latlab_measure::message::{END, KEPT, Message, Messenger, RECEIVED, Task, program};
use latlab_part::failure::{Context as _, Result};
use latlab_sys::signal::{self, Event, Signals};
use latlab_sys::{file, process};
use std::io::{self, BufRead as _, Read as _};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// Carry out the task on stdin and answer in messages; started by latlab itself
#[derive(Debug, clap::Args)]
pub(super) struct Agent {
    /// Folder of the record until it has been received
    folder: PathBuf,
}

/// The interval of messages while a probe measures.
const INTERVAL: Nanos = Nanos::from_millis(250);
/// Longest wait until the client acknowledges the record, which it does at once.
const ACK_TIMEOUT: Duration = Duration::from_mins(1);

impl Agent {
    pub(super) fn run(&self) -> Result<()> {
        let signals = block_signals()?;
        let (acknowledged, acknowledgements) = mpsc::channel();
        let outcome = read_task().and_then(|task| match task {
            Task::Plan(plan) => measure(&plan, &signals, acknowledged).map(Some),
            Task::Command(words) => {
                say(&Message::Exited(execute(&words, &signals, acknowledged)?));
                Ok(None)
            }
        });

        match outcome {
            Ok(Some(outcome)) => self.deliver(outcome, &acknowledgements),
            Ok(None) => Ok(()),
            Err(failure) => {
                say(&Message::Failed(failure));
                Ok(())
            }
        }
    }

    /// Sends the record. A file keeps it until the client acknowledges it: what was written to a
    /// pipe may still be lost in the network.
    fn deliver(&self, outcome: Outcome, acknowledgements: &Receiver<()>) -> Result<()> {
        let Outcome { record, verdict } = outcome;
        let path = self.folder.join(KEPT);
        let written = file::write_atomically(&path, record.to_json().as_bytes());
        let sent = Message::Record { record: Box::new(record), verdict }.send(&mut io::stdout());
        if sent.is_ok() && acknowledgements.recv_timeout(ACK_TIMEOUT).is_ok() {
            let _ = std::fs::remove_file(path);
            return Ok(());
        }
        written.context(&format!("the record can't be written to {}", path.display()))
    }
}

fn read_task() -> Result<Task> {
    /// Bytes, far more than any task has.
    const LONGEST: u64 = 16 << 20;
    let mut line = String::new();
    let read = io::stdin().lock().take(LONGEST).read_line(&mut line);
    read.context("no task on stdin")?;
    serde_json::from_str(&line).context("stdin is not a task")
}

fn measure(plan: &Plan, signals: &Signals, acknowledged: Sender<()>) -> Result<Outcome> {
    rights::keep_for(&[(plan, true)])?;
    listen(acknowledged)?;
    let mut watch = Messenger::new(io::stdout(), INTERVAL).and_records();
    engine::run(&Prepared::of(plan)?, TimeDomain::Silicon, signals, &mut watch)
}

/// Runs latlab with these words until it has ended; a client that disconnects asks it to end.
/// Returns its exit code.
fn execute(words: &[String], signals: &Signals, acknowledged: Sender<()>) -> Result<u8> {
    listen(acknowledged)?;
    let mut command = process::command("/proc/self/exe");
    let mut is_ended = || signals.wait(Nanos(0)) == Event::End;
    program::run(command.args(words), &mut io::stdout(), &mut is_ended)
}

/// Sends the last message. The client may have disconnected.
fn say(last: &Message) {
    let _ = last.send(&mut io::stdout());
}

/// Starts a thread that reads the client's messages. When the client disconnects, the run ends.
fn listen(acknowledged: Sender<()>) -> Result<()> {
    let read = move || {
        for line in io::stdin().lock().lines().map_while(io::Result::ok) {
            match line.as_str() {
                END => signal::request_end(),
                RECEIVED => drop(acknowledged.send(())),
                _ => {}
            }
        }
        signal::request_end();
    };
    let thread = std::thread::Builder::new().name("client".to_owned()).stack_size(64 * 1024);
    thread.spawn(read).map(drop).context("a thread could not be started")
}
