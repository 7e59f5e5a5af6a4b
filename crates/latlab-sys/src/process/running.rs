//! A program that runs, and ends with the value that stands for it.

use super::Patience;
use latlab_core::time::Nanos;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::io;
use std::process::{Child, Command, ExitStatus};

/// A running program. Dropping this kills it, with its whole process group if it leads one.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts the program.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        command.spawn().map(Running)
    }

    /// The child process, for its pipes and its exit status.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// A function that waits until the program has ended, for another thread to call. It does not reap
    /// the program, so that its id stays its own.
    pub fn until_end(&self) -> impl FnOnce() + Send + use<> {
        let pid = Pid::from_child(&self.0);
        move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(rustix::process::waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
        }
    }

    /// Kills the program and waits for its end, at most 5 s: one in uninterruptible sleep, as on a
    /// disk that does not answer, ends later.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        const PATIENCE: Nanos = Nanos::from_secs(5);
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            self.signal(Signal::KILL);
        }
        self.wait_for(PATIENCE)
    }

    /// Asks the program and its process group to end (SIGTERM).
    pub fn ask_to_end(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            self.signal(Signal::TERM);
        }
    }

    /// [Asks](Running::ask_to_end) the program to end, waits for it for at most `patience`, and kills
    /// it after that.
    pub fn end(&mut self, patience: Nanos) -> io::Result<ExitStatus> {
        self.ask_to_end();
        self.wait_for(patience).or_else(|_| self.kill())
    }

    /// Sends a signal to the program, which is not reaped, or to the process group that it leads.
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        // The child is not reaped, so the id is still its own.
        let leads_group = rustix::process::getpgid(Some(pid)) == Ok(pid);
        let _ = if leads_group {
            rustix::process::kill_process_group(pid, signal)
        } else {
            rustix::process::kill_process(pid, signal)
        };
    }

    /// Waits for the end of the program, at most this long, as [`Patience`] counts it.
    pub fn wait_for(&mut self, patience: Nanos) -> io::Result<ExitStatus> {
        let limit = Patience::with(self.0.id(), patience);
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if limit.is_over() {
                return Err(io::Error::other(format!("it had not ended after {patience}")));
            }
            crate::clock::sleep_for(Nanos::from_millis(1));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
