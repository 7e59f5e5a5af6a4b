//! A load's worker: this program once more, in a process of its own.

use crate::process::{Patience, command, inherit};
use crate::shared::SharedPage;
use crate::usage;
use latlab_core::time::Nanos;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ExitStatus, Stdio};

/// A worker process. The kernel kills it when the thread that started it ends; dropping this ends
/// it and all its children.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    page: SharedPage,
    asked: bool,
    killed: bool,
    ended: Option<(ExitStatus, Nanos)>,
}

impl Worker {
    /// Starts this program again. `arguments` gets the number of the descriptor under which the
    /// worker finds its [`SharedPage`].
    pub fn start(arguments: impl FnOnce(i32) -> Vec<String>) -> io::Result<Worker> {
        let page = SharedPage::new()?;
        let mut command = command("/proc/self/exe");
        command.args(arguments(page.as_raw_fd()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0);
        inherit(&mut command, &page);
        Ok(Worker { child: command.spawn()?, page, asked: false, killed: false, ended: None })
    }

    /// The counters that it shares with this process.
    pub fn progress(&self) -> &SharedPage {
        &self.page
    }

    /// Whether it still runs; without a request to stop, a worker ends only when something failed.
    /// When it has ended, its children are killed as well.
    pub fn is_alive(&mut self) -> bool {
        if self.ended.is_none() && self.is_zombie() {
            self.kill_group();
            self.reap();
        }
        self.ended.is_none()
    }

    /// Whether it ended before it was asked to.
    pub fn ended_by_itself(&self) -> bool {
        self.ended.is_some() && !self.asked
    }

    /// Asks it to stop, and does not wait for it.
    pub fn ask_to_stop(&mut self) {
        if !self.asked && self.is_alive() {
            self.asked = true;
            let _ = rustix::process::kill_process(self.pid(), Signal::TERM);
        }
    }

    /// The text that it wrote to stderr before it ended, or its exit status where it wrote none.
    pub fn failure_message(&mut self) -> String {
        let Some((status, _)) = self.ended else {
            return String::new();
        };
        let mut words = String::new();
        if let Some(stderr) = self.child.stderr.as_mut() {
            // All other writers were killed, so this does not wait long.
            let _ = stderr.read_to_string(&mut words);
        }
        if words.trim().is_empty() { status.to_string() } else { words.trim().to_owned() }
    }

    /// Patience with the worker, from now on.
    pub fn patience(&self, length: Nanos) -> Patience {
        Patience::with(self.child.id(), length)
    }

    /// CPU time of the worker and its children. None if it still exists.
    pub fn cpu_time(&self) -> Option<Nanos> {
        self.ended.map(|(_, cpu)| cpu)
    }

    /// Asks workers to stop, and kills those that still run after 2 s. Those that still exist 2 s
    /// later wait in the kernel, for example for a disk that does not answer (uninterruptible
    /// sleep): they end when that wait ends.
    pub fn stop(mut running: Vec<&mut Worker>) {
        for worker in &mut running {
            worker.ask_to_stop();
        }
        wait_for(&mut running);
        for worker in &mut running {
            worker.killed = true;
            worker.kill_group();
        }
        wait_for(&mut running);
    }

    /// Kills its process group: the worker and the children that it left.
    fn kill_group(&self) {
        let _ = rustix::process::kill_process_group(self.pid(), Signal::KILL);
    }

    /// Whether it has ended and waits to be reaped.
    fn is_zombie(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(rustix::process::waitid(WaitId::Pid(self.pid()), options), Ok(Some(_)))
    }

    /// Its process id, which is its own until it is reaped.
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn reap(&mut self) {
        if let Ok((status, used)) = usage::wait(self.pid()) {
            self.ended = Some((ExitStatus::from_raw(status), used));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.killed {
            Worker::stop(vec![self]);
        }
    }
}

/// Waits for workers to end, for at most 2 s of each; those that still run remain in the list.
fn wait_for(running: &mut Vec<&mut Worker>) {
    const PATIENCE: Nanos = Nanos::from_secs(2);
    const STEP: Nanos = Nanos::from_millis(1);
    let limit = |worker: &&mut Worker| worker.patience(PATIENCE);
    let limits: Vec<Patience> = running.iter().map(limit).collect();
    loop {
        running.retain_mut(|worker| worker.is_alive());
        if running.is_empty() || limits.iter().all(Patience::is_over) {
            return;
        }
        crate::clock::sleep_for(STEP);
    }
}
