//! A QEMU process: its start, its output and its end.

use super::cell::{Boot, Cell};
use super::launch::{Launching, Start};
use super::machine::{arguments, missing};
use super::output::{Lines, Outputs, end_of, text};
use super::start;
use latlab_core::time::Nanos;
use latlab_measure::message::complaint::{self, COMPLAINTS};
use latlab_measure::message::{LONGEST_LINE, Message};
use latlab_measure::session::Limit;
use latlab_part::failure::{Context as _, Failure, Result, failed};
use latlab_sys::process::{Patience, Running};
use latlab_sys::{clock, file};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// A running guest. Dropping it kills it; it leaves nothing in any file system but a snapshot.
pub(crate) struct Guest {
    target: String,
    running: Running,
    /// Dropped after `running`: a launch ends when QEMU has ended.
    launch: Option<Launching>,
    outputs: Outputs,
    /// The memory of its snapshot, which QEMU maps; none where it boots.
    snapshot: Option<File>,
    started: Nanos,
    limit: Limit,
    patience: Patience,
    /// The guest's output through the port.
    sent: Lines,
    ended: Option<ExitStatus>,
}

/// What became of a launch.
pub(crate) enum Launched {
    /// The guest has its job, or is on the way to it.
    Well,
    /// The guest has its job; the snapshot could not be kept, for this reason.
    NotKept(io::Error),
    /// The guest could not be restored, for this reason.
    NotRestored(String),
    /// The guest is lost.
    Lost(Failure),
}

impl Guest {
    /// Starts a guest.
    pub(crate) fn start(cell: &Cell, boot: Boot, start: Start, limit: Limit) -> Result<Guest> {
        let arguments = arguments(cell)?;
        Guest::try_start(cell, &arguments, boot, start, limit)
            .map_err(|e| missing(&cell.target, cell.kernel.arch, &e))
    }

    fn try_start(
        cell: &Cell,
        arguments: &[String],
        boot: Boot,
        start: Start,
        limit: Limit,
    ) -> io::Result<Guest> {
        let mut outputs = Outputs::new()?;
        let mut mapped = None;
        if let Start::Restore(snapshot) = &start {
            outputs.console.write_all(snapshot.stopped.console.as_bytes())?;
            mapped = Some(snapshot.memory.try_clone()?);
        }
        let sent = Lines::of(outputs.port.try_clone()?, LONGEST_LINE);
        let (mut running, launch) = start::start(cell, arguments, boot, start, &outputs)?;
        let patience = Patience::with(running.child().id(), limit.length());
        Ok(Guest {
            target: cell.target.clone(),
            running,
            launch,
            outputs,
            snapshot: mapped,
            started: clock::now(),
            limit,
            patience,
            sent,
            ended: None,
        })
    }

    /// The messages since the last call.
    pub(crate) fn messages(&mut self) -> Result<Vec<Message>> {
        let lines = self.sent.take().context(&self.target)?;
        lines.lines().map(Message::read).collect()
    }

    /// All its messages, as text.
    pub(crate) fn transcript(&self) -> Result<String> {
        text(&self.outputs.port).context(&self.target)
    }

    /// The recording of its plugin; empty without one.
    pub(crate) fn trace(&self) -> Result<String> {
        text(&self.outputs.trace).context(&self.target)
    }

    /// What became of the launch, once.
    pub(crate) fn launched(&mut self) -> Launched {
        let has_ended = matches!(self.running.child().try_wait(), Ok(Some(_)));
        let is_over = |launch: &&mut Launching| has_ended || launch.is_finished();
        let Some(launch) = self.launch.as_mut().filter(is_over) else { return Launched::Well };
        let restores = launch.restores;
        let ended = launch.join();
        self.launch = None;
        match ended {
            Ok(None) => Launched::Well,
            Ok(Some(error)) => Launched::NotKept(error),
            Err(error) => self.launch_failed(restores, &error),
        }
    }

    /// The meaning of a failed launch. If QEMU is ending, its exit status says more than the error
    /// of the socket.
    fn launch_failed(&mut self, restores: bool, error: &io::Error) -> Launched {
        /// The number of the signal on every architecture.
        const SIGKILL: i32 = 9;
        match self.running.wait_for(Nanos::from_secs(1)) {
            // Whoever kills QEMU does not mean the snapshot.
            Ok(status) if restores && status.signal() != Some(SIGKILL) => {
                Launched::NotRestored(self.qemus_reason(status))
            }
            Ok(_) => Launched::Well,
            Err(_) if restores => Launched::NotRestored(error.to_string()),
            Err(_) => Launched::Lost(self.lost(&format!("QEMU's debugger port failed ({error})"))),
        }
    }

    /// The reason why the guest sends no more messages; none while it may send some.
    pub(crate) fn failure(&mut self) -> Option<Failure> {
        if self.ended.is_none() {
            self.ended = self.running.child().try_wait().ok().flatten();
        }
        if let Some(status) = self.ended {
            return Some(self.ended_with(status));
        }
        let ended = |why: String| self.described(&format!("the guest was ended: {why}"));
        self.overdue().or_else(|| self.outputs.excess().map(ended))
    }

    /// The failure of a guest that has not finished in time.
    fn overdue(&self) -> Option<Failure> {
        let is_over = match self.limit {
            Limit::WallClock(limit) => self.age() > limit,
            Limit::Usual(_) => self.patience.is_over(),
        };
        let within = self.limit.length();
        let why =
            format!("the guest did not finish within {within}; raise the limit with --limit TIME");
        is_over.then(|| self.described(&why))
    }

    /// Wall-clock time since the start.
    pub(crate) fn age(&self) -> Nanos {
        clock::now() - self.started
    }

    /// Lines of the console in which the kernel reports a fault: the first ones, and how many there are
    /// more.
    pub(crate) fn kernel_complaints(&self) -> Vec<String> {
        complaints(self.console_lines())
    }

    fn ended_with(&self, status: ExitStatus) -> Failure {
        let console = self.console_lines();
        let panic = console.iter().find_map(|line| line.split_once("Kernel panic - not syncing: "));
        if let Some((_, why)) = panic {
            return self.lost(&format!("the guest's kernel panicked ({why})"));
        }
        if self.is_out_of_room(status) {
            return failed(&self.target, OUT_OF_ROOM);
        }
        if status.success() {
            return self.lost("the guest shut down without a result");
        }
        self.lost(&self.qemus_reason(status))
    }

    /// Whether QEMU could not read the memory of its snapshot: some file systems need room for that.
    fn is_out_of_room(&self, status: ExitStatus) -> bool {
        /// The number of the signal on x86 and arm64.
        const SIGBUS: i32 = 7;
        status.signal() == Some(SIGBUS) && self.snapshot.as_ref().is_some_and(file::is_on_full_disk)
    }

    /// Why QEMU ended.
    fn qemus_reason(&self, status: ExitStatus) -> String {
        if self.is_out_of_room(status) {
            return OUT_OF_ROOM.to_owned();
        }
        if let Some(signal) = status.signal() {
            return format!("QEMU was killed by signal {signal}");
        }
        let stderr = text(&self.outputs.stderr).unwrap_or_default();
        let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        format!("QEMU ended with {status}: {last}")
    }

    /// A failure with the time after which the guest was lost, and what its console says.
    fn lost(&self, why: &str) -> Failure {
        let after = Nanos::from_millis(self.age().0 / 1_000_000);
        self.described(&format!("{why} after {after}"))
    }

    fn described(&self, why: &str) -> Failure {
        /// Bytes that are read of its end.
        const MOST: u64 = 16 << 10;
        let console = lines(&end_of(&self.outputs.console, MOST).unwrap_or_default());
        Failure::failed(format!("{}: {why}; {}", self.target, told(&console)))
    }

    fn console_lines(&self) -> Vec<String> {
        lines(&text(&self.outputs.console).unwrap_or_default())
    }
}

/// Why QEMU was killed by SIGBUS, and what to do.
const OUT_OF_ROOM: &str = "the file system of the cache is full, so that QEMU can't read the guest's snapshot \
                           there: make room, or set XDG_CACHE_HOME";

/// The reason for a failure, from the console: the kernel's first fault report, which names the
/// function and its callers, or else the end of the console.
fn told(console: &[String]) -> String {
    /// Lines of a report, which has some sixty with registers and modules.
    const REPORT: usize = 60;
    const END: usize = 8;
    let fault = console.iter().position(|line| FAULTS.iter().any(|word| line.contains(word)));
    let (what, shown) = match fault {
        Some(first) => ("its console", &console[first..console.len().min(first + REPORT)]),
        None => ("the end of its console", &console[console.len().saturating_sub(END)..]),
    };
    match shown {
        [] => "its console is empty".to_owned(),
        lines => format!("{what}:\n  {}", lines.join("\n  ")),
    }
}

/// Words in the first line of the kernel's report of a fault, on x86 and arm64.
const FAULTS: [&str; 8] = [
    "BUG:",
    "kernel BUG at",
    "Oops:",
    "general protection",
    "Unable to handle kernel",
    "Internal error:",
    "double fault",
    "Kernel panic",
];

/// The lines of a console that are not empty.
/// The lines in which a kernel reports a fault.
fn complaints(console: Vec<String>) -> Vec<String> {
    let bad = ["BUG:", "WARNING:", "Oops:", "detected stall", "blocked for more than"];
    let mut all = console.into_iter().filter(|line| bad.iter().any(|word| line.contains(word)));
    let mut kept: Vec<String> = all.by_ref().take(COMPLAINTS).map(complaint::cut).collect();
    let rest = all.count();
    if rest > 0 {
        kept.push(format!("{rest} more such lines"));
    }
    kept
}

fn lines(console: &str) -> Vec<String> {
    let lines = console.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_of_a_fault_is_shown_from_its_first_line() {
        let line = |n| format!("line {n}");
        let mut console: Vec<String> = (0..30).map(line).collect();
        let end = told(&console);
        assert!(end.starts_with("the end of its console:\n  line 22\n"), "{end}");
        assert!(end.ends_with("line 29"));
        console[3] = "BUG: kernel NULL pointer dereference, address: 0".to_owned();
        console.extend((30..100).map(line));
        let fault = told(&console);
        assert!(fault.starts_with("its console:\n  BUG: kernel NULL"), "{fault}");
        assert!(fault.ends_with("\n  line 62"), "{fault}");
        assert_eq!(told(&[]), "its console is empty");
    }

    #[test]
    fn complaints_of_a_kernel_are_few_and_short() {
        let console = |lines: usize| {
            let bug = format!("BUG: {}", "x".repeat(2_000));
            let mut console = vec!["Linux version 6.12".to_owned()];
            console.extend(std::iter::repeat_n(bug, lines));
            complaints(console)
        };
        assert_eq!(console(0), Vec::<String>::new());
        assert_eq!(console(COMPLAINTS).len(), COMPLAINTS);
        let many = console(1_000);
        assert!(many[0].chars().count() < 1_010, "{}", many[0]);
        assert_eq!(many[COMPLAINTS..], ["980 more such lines"]);
    }
}
