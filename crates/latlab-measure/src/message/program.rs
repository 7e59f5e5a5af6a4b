//! A program on a target: its output is sent as messages while it runs.

use super::Message;
use latlab_core::time::Nanos;
use latlab_part::failure::{Context as _, Result, failed};
use latlab_part::progress::Stream;
use latlab_sys::clock;
use latlab_sys::process::Running;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::Builder;
use std::time::Duration;

/// How long to wait in all for output after the program has ended, where its pipes stay open: a process
/// that it left behind may keep them for ever, and the threads that read them may wait for a busy CPU.
const LAST_OUTPUT: Nanos = Nanos::from_secs(1);

/// Number of messages sent after the program has ended, more than it can have left in its pipes: a
/// process that it left behind may write for ever.
const LAST_MESSAGES: usize = 256;

/// Number of messages that may wait to be sent. Then the program waits, as for any full pipe.
const WAITING: usize = 16;

/// Interval at which to look whether the program is to end.
const STEP: Nanos = Nanos::from_millis(100);

/// What is waited for while a program runs. Nothing is polled more often than [`STEP`]: each look
/// would wake a CPU on which somebody measures.
enum Event {
    Output(Message),
    Ended,
}

/// Runs a program and sends its output. It is asked to end when `is_ended` returns true. Returns its
/// exit code as a shell reports it.
pub fn run(
    command: &mut Command,
    to: &mut dyn Write,
    is_ended: &mut dyn FnMut() -> bool,
) -> Result<u8> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let failed_here = |e: io::Error| failed(&name, e);
    let unable = |e: io::Error| failed(&name, format!("a thread can't be started: {e}"));
    let mut running = Running::start(command).map_err(failed_here)?;
    let (sender, events) = mpsc::sync_channel(WAITING);
    let end = running.until_end();
    let child = running.child();
    let outputs = [
        (Stream::Stdout, child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        (Stream::Stderr, child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
    ];
    for (stream, pipe) in outputs {
        let (pipe, sender) = (pipe.expect("it was asked for"), sender.clone());
        let forwarding = move || forward(stream, pipe, &sender);
        Builder::new().spawn(forwarding).map_err(unable)?;
    }
    let ending = move || {
        end();
        sender.send(Event::Ended)
    };
    Builder::new().spawn(ending).map_err(unable)?;
    let status = loop {
        if let Ok(Event::Output(message)) = events.recv_timeout(Duration::from_nanos(STEP.0)) {
            send(&message, to)?;
        }
        if let Some(status) = running.child().try_wait().map_err(failed_here)? {
            break status;
        }
        if is_ended() {
            running.ask_to_end();
        }
    };
    send_last(&events, to)?;
    Ok(code(status))
}

/// Sends what an ended program has written. Only the time spent waiting counts, as sending may take
/// longer.
fn send_last(events: &Receiver<Event>, to: &mut dyn Write) -> Result<()> {
    let mut patience = LAST_OUTPUT;
    for _ in 0..LAST_MESSAGES {
        let start = clock::now();
        let Ok(event) = events.recv_timeout(Duration::from_nanos(patience.0)) else { break };
        patience = patience - (clock::now() - start);
        if let Event::Output(message) = event {
            send(&message, to)?;
        }
    }
    Ok(())
}

fn send(message: &Message, to: &mut dyn Write) -> Result<()> {
    message.send(to).context("the output can't be sent")
}

/// Forwards a pipe until all its writers have closed it.
fn forward(stream: Stream, mut pipe: Box<dyn Read + Send>, to: &SyncSender<Event>) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = pipe.read(&mut bytes) {
        if to.send(Event::Output(Message::output(stream, &bytes[..length]))).is_err() {
            return;
        }
    }
}

/// The exit code as a shell reports it: 128 plus the signal's number for a killed program.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latlab_sys::process;
    use latlab_testing::{Patience, times_asleep};
    use std::cell::Cell;

    /// Takes messages for a limited time, and calls `look` for each.
    struct Sink<F> {
        patience: Patience,
        look: F,
    }

    impl<F: FnMut()> Write for Sink<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.look)();
            let in_time = !self.patience.is_over();
            in_time.then_some(bytes.len()).ok_or_else(|| io::Error::other("it writes on"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn shell(script: &str, look: impl FnMut(), mut is_ended: impl FnMut() -> bool) -> Result<u8> {
        let mut sink = Sink { patience: Patience::new(Duration::from_secs(20)), look };
        run(process::command("sh").args(["-c", script]), &mut sink, &mut is_ended)
    }

    #[test]
    fn program_that_writes_all_the_time_is_asked_to_end() {
        let wrote = Cell::new(false);
        // Slower than the program, so that there is always more to send.
        let look = || {
            wrote.set(true);
            clock::sleep_for(Nanos::from_millis(1));
        };
        assert_eq!(shell("while :; do echo x; done", look, || wrote.get()), Ok(128 + 15));
    }

    #[test]
    fn process_left_behind_that_writes_does_not_delay_the_end() {
        for left in ["while :; do echo x; sleep 0.1; done", "yes"] {
            let script = format!("({left}) & sleep 0.1; exit 3");
            assert_eq!(shell(&script, || (), || false), Ok(3), "{left}");
        }
    }

    #[test]
    fn waiting_for_a_program_wakes_no_cpu_often() {
        let (before, begun) = (times_asleep(), clock::now());
        assert_eq!(shell("sleep 1", || (), || false), Ok(0));
        let (slept, passed) = (times_asleep() - before, clock::now() - begun);
        // The waits, and what starting the program takes. A busy machine makes it last longer.
        assert!(slept < passed.0 / STEP.0 + 20, "{slept} in {passed}");
    }

    #[test]
    fn program_waits_until_its_output_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let written = folder.path().join("written");
        let script = format!("head -c 10000000 /dev/zero; touch {}", written.display());
        let mut first = true;
        let look = || {
            if std::mem::take(&mut first) {
                clock::sleep_for(Nanos::from_millis(500));
                assert!(!written.exists(), "all its output waits in memory");
            }
        };
        assert_eq!(shell(&script, look, || false), Ok(0));
        assert!(written.exists());
    }
}
