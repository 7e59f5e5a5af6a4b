//! `latlab agent`: the far side of a target, started there by latlab itself.

use crate::engine::{self, Outcome};
use crate::failure::{Result, failed};
use crate::message::{END, KEPT, Message, Messenger, RECEIVED};
use latlab_core::machine::TimeDomain;
use latlab_core::plan::Plan;
use latlab_core::time::Nanos;
use latlab_sys::file;
use latlab_sys::signal::{self, Signals};
use std::io::{self, BufRead as _};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// Carry out the plan that comes on stdin, and answer in messages: started by latlab itself
#[derive(Debug, clap::Args)]
pub(super) struct Agent {
    /// Where the record lies until it has been received
    folder: PathBuf,
}

/// Between two messages while a probe measures.
const PACE: Nanos = Nanos::from_millis(250);
/// A near side that is there says at once that it has got the record.
const PATIENCE: Duration = Duration::from_mins(1);

impl Agent {
    pub(super) fn run(&self) -> Result<()> {
        let signals = Signals::hold().map_err(|e| failed("signals can't be held back", e))?;
        let (tell, received) = mpsc::channel();
        let outcome = read_plan().and_then(|plan| {
            listen(tell)?;
            let mut watch = Messenger::new(io::stdout(), PACE);
            engine::run(&plan, TimeDomain::Silicon, &signals, &mut watch)
        });
        let ending = match outcome {
            Ok(outcome) => self.deliver(outcome, &received),
            Err(failure) => {
                // Where nobody listens any more, there is nobody to tell.
                let _ = Message::Failed(failure).send(&mut io::stdout());
                Ok(())
            }
        };
        // The near side's going away, which is a request to end, must not take the place of this.
        std::mem::forget(signals);
        ending
    }

    /// Sends the record. It lies in a file until it is sure to have come: what can be written
    /// into a pipe need not reach the other end of a network.
    fn deliver(&self, outcome: Outcome, received: &Receiver<()>) -> Result<()> {
        let Outcome { record, verdict } = outcome;
        let place = self.folder.join(KEPT);
        let kept = file::write_atomically(&place, record.to_json().as_bytes());
        let sent = Message::Record { record: Box::new(record), verdict }.send(&mut io::stdout());
        if sent.is_ok() && received.recv_timeout(PATIENCE).is_ok() {
            let _ = std::fs::remove_file(place);
            return Ok(());
        }
        kept.map_err(|e| failed(&format!("the record can't be kept in {}", place.display()), e))
    }
}

fn read_plan() -> Result<Plan> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|e| failed("no plan came", e))?;
    serde_json::from_str(&line).map_err(|e| failed("what came is no plan", e))
}

/// Listens to the near side, on a thread of its own. When it is gone, the run ends as well.
fn listen(received: Sender<()>) -> Result<()> {
    let life = move || {
        for line in io::stdin().lock().lines().map_while(io::Result::ok) {
            match line.as_str() {
                END => signal::end(),
                RECEIVED => drop(received.send(())),
                _ => {}
            }
        }
        signal::end();
    };
    let thread = std::thread::Builder::new().name("near side".to_owned()).stack_size(64 * 1024);
    thread.spawn(life).map(drop).map_err(|e| failed("a thread could not be started", e))
}
