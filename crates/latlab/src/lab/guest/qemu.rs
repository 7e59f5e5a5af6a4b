//! A QEMU process: its start, its output and its end.

use super::cell::{Boot, Cell};
use super::plugin::Plugin;
use super::{GuestTime, debugger, driver};
use crate::failure::{Failure, Result, failed};
use crate::lab::arch::GUEST;
use crate::message::Message;
use crate::session::Accel;
use latlab_core::time::Nanos;
use latlab_sys::process::{self, Running};
use latlab_sys::{clock, file};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

/// A running guest. Dropping it kills it; it leaves nothing in any file system.
pub(crate) struct Guest {
    target: String,
    running: Running,
    /// The kernel's console.
    console: File,
    /// Messages from latlab in the guest.
    port: File,
    /// QEMU's own output.
    stderr: File,
    /// The recording of the plugin.
    trace: Option<File>,
    preset: Option<JoinHandle<io::Result<()>>>,
    started: Nanos,
    patience: Nanos,
    /// Bytes of the port that have been read.
    read: u64,
    ended: Option<ExitStatus>,
}

impl Guest {
    /// Starts a guest.
    pub(crate) fn start(cell: &Cell, boot: &Boot, patience: Nanos) -> Result<Guest> {
        let start = || -> io::Result<Guest> {
            let (console, port, stderr) =
                (file::in_memory()?, file::in_memory()?, file::in_memory()?);
            let mut initramfs = file::in_memory()?;
            initramfs.write_all(&boot.initramfs)?;
            let mut command = process::command(GUEST.qemu);
            command.args(arguments(cell));
            command.arg("-kernel").arg(&cell.kernel.image).args(["-append", &boot.cmdline]);
            let path = path_of(&mut command, &initramfs);
            command.args(["-initrd", &path]);
            for (name, file) in [("console", &console), ("port", &port)] {
                let path = path_of(&mut command, file);
                command.args(["-chardev", &format!("file,id={name},path={path}")]);
                command.args(["-serial", &format!("chardev:{name}")]);
            }
            let trace = cell.plugin.as_ref().map(|it| record(&mut command, it)).transpose()?;
            let debugger = cell.timer.map(|_| debugger_socket(&mut command)).transpose()?;
            command.stdin(Stdio::null()).stdout(stderr.try_clone()?);
            command.stderr(stderr.try_clone()?);
            let running = Running::start(&mut command)?;
            // Now QEMU alone holds the other end of the debugger's socket.
            let preset = debugger.zip(cell.timer).map(|((ours, qemus), timer)| {
                drop(qemus);
                debugger::preset(ours, timer)
            });
            Ok(Guest {
                target: cell.target.clone(),
                running,
                console,
                port,
                stderr,
                trace,
                preset,
                started: clock::now(),
                patience,
                read: 0,
                ended: None,
            })
        };
        start().map_err(|error| missing(&cell.target, &error))
    }

    /// The messages since the last call, whole lines only.
    pub(crate) fn messages(&mut self) -> Result<Vec<Message>> {
        let text = self.unread()?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        text[..whole].lines().map(Message::read).collect()
    }

    /// All its messages, as text.
    pub(crate) fn transcript(&mut self) -> Result<String> {
        self.read = 0;
        self.unread()
    }

    /// The recording of its plugin; empty without one.
    pub(crate) fn trace(&self) -> Result<String> {
        let Some(trace) = &self.trace else { return Ok(String::new()) };
        let bytes = read_from(trace, 0).map_err(|e| failed(&self.target, e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn unread(&self) -> Result<String> {
        let bytes = read_from(&self.port, self.read).map_err(|e| failed(&self.target, e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The reason why the guest sends no more messages; none while it may send some.
    pub(crate) fn failure(&mut self) -> Option<Failure> {
        if let Some(error) = self.preset_error() {
            return Some(self.lost(&format!("QEMU's debugger port failed ({error})")));
        }
        let waited = clock::now() - self.started;
        if self.ended.is_none() {
            self.ended = self.running.child().try_wait().ok().flatten();
        }
        match self.ended {
            Some(status) => Some(self.ended_with(status)),
            None if waited > self.patience => {
                let why = format!("the guest did not finish within {}", self.patience);
                Some(self.described(&why))
            }
            None => None,
        }
    }

    /// Wall-clock time since the start.
    pub(crate) fn age(&self) -> Nanos {
        clock::now() - self.started
    }

    /// Lines of the console in which the kernel reports a fault.
    pub(crate) fn kernel_complaints(&self) -> Vec<String> {
        let bad = ["BUG:", "WARNING:", "Oops:", "detected stall", "blocked for more than"];
        let console = self.console_lines();
        console.into_iter().filter(|line| bad.iter().any(|word| line.contains(word))).collect()
    }

    fn preset_error(&mut self) -> Option<io::Error> {
        if !self.preset.as_ref()?.is_finished() {
            return None;
        }
        let result = self.preset.take()?.join();
        let error =
            result.unwrap_or_else(|_| Err(io::Error::other("its thread panicked"))).err()?;
        // If QEMU is ending, its exit status says more than the broken socket.
        let patience = clock::now() + Nanos::from_secs(1);
        while clock::now() < patience {
            if matches!(self.running.child().try_wait(), Ok(Some(_))) {
                return None;
            }
            clock::sleep_for(Nanos::from_millis(5));
        }
        Some(error)
    }

    fn ended_with(&self, status: ExitStatus) -> Failure {
        let console = self.console_lines();
        let panic = console.iter().find_map(|line| line.split_once("Kernel panic - not syncing: "));
        if let Some((_, why)) = panic {
            return self.lost(&format!("the guest's kernel panicked ({why})"));
        }
        let stderr = read_from(&self.stderr, 0).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr);
        let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        if let Some(signal) = status.signal() {
            return self.lost(&format!("QEMU was killed by signal {signal}"));
        }
        if !status.success() {
            return self.lost(&format!("QEMU ended with {status}: {last}"));
        }
        self.lost("the guest shut down without a result")
    }

    /// A failure with the time after which the guest was lost, and the end of its console.
    fn lost(&self, why: &str) -> Failure {
        let after = Nanos::from_millis(self.age().0 / 1_000_000);
        self.described(&format!("{why} after {after}"))
    }

    fn described(&self, why: &str) -> Failure {
        const SHOWN: usize = 8;
        let console = self.console_lines();
        let lines = &console[console.len().saturating_sub(SHOWN)..];
        let console = if lines.is_empty() {
            "its console is empty".to_owned()
        } else {
            format!("the end of its console:\n  {}", lines.join("\n  "))
        };
        Failure::Failed(format!("{}: {why}; {console}", self.target))
    }

    fn console_lines(&self) -> Vec<String> {
        let bytes = read_from(&self.console, 0).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

/// QEMU's arguments for a guest, without devices that depend on the host's time or its users.
///
/// Where the guest goes idle, QEMU's main loop moves its clock to the next timer, and sometimes
/// does so before the instructions up to there are counted (`icount_start_warp_timer`,
/// `softmmu/icount.c`). The two wait for each other only while QEMU records the guest for a replay;
/// the recording itself is not wanted. QEMU can record guests with one processor only.
pub(crate) fn arguments(cell: &Cell) -> Vec<String> {
    let (cpus, memory) = (cell.profile.cpus, cell.profile.memory.0 >> 20);
    let accel = match cell.time {
        GuestTime::Instructions => "-accel tcg -rtc base=2020-01-01,clock=vm",
        GuestTime::Wall(Accel::Tcg) => "-accel tcg",
        GuestTime::Wall(Accel::Kvm) => "-accel kvm",
    };
    let clock = match (cell.time, cpus) {
        (GuestTime::Wall(_), _) => "",
        (_, 1) => "-icount shift=0,sleep=off,align=off,rr=record,rrfile=/dev/null",
        _ => "-icount shift=0,sleep=off,align=off",
    };
    let size = format!("-smp {cpus} -m {memory}M");
    let words = [accel, GUEST.processor(cell.time, cpus), clock, GUEST.board, &size];
    let words = words.into_iter().flat_map(str::split_whitespace);
    let driver = cell.driver.as_ref().map_or(&[][..], |_| driver::device(cell.time));
    let devices = cell.needs.devices.iter().flat_map(|device| GUEST.device(*device));
    words.chain(driver.iter().copied()).chain(devices.copied()).map(str::to_owned).collect()
}

/// QEMU's own name and version. Fails with the package to install where QEMU is missing.
pub(crate) fn version(target: &str) -> Result<String> {
    let asked = process::command(GUEST.qemu).arg("--version").output();
    let said = asked.map_err(|error| missing(target, &error))?;
    if !said.status.success() {
        return Err(Failure::Failed(format!(
            "{target}: {} --version: {}",
            GUEST.qemu, said.status
        )));
    }
    Ok(String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().to_owned())
}

fn missing(target: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        let (qemu, package) = (GUEST.qemu, GUEST.qemu_package);
        return Failure::Unsupported(format!(
            "{target}: {qemu} is not installed: apt-get install {package}"
        ));
    }
    failed(&format!("{target}: {} can't be started", GUEST.qemu), error)
}

/// The path by which QEMU opens a file that has no name.
fn path_of(command: &mut Command, file: &File) -> String {
    format!("/proc/self/fd/{}", process::inherit(command, file))
}

/// Loads the plugin, which writes its recording into the returned file.
fn record(command: &mut Command, plugin: &Plugin) -> io::Result<File> {
    let trace = file::in_memory()?;
    let path = path_of(command, &trace);
    command.args(["-plugin", &plugin.argument(&path)]);
    Ok(trace)
}

/// A socket to QEMU's debugger port: our end and QEMU's.
fn debugger_socket(command: &mut Command) -> io::Result<(UnixStream, UnixStream)> {
    let (ours, qemus) = UnixStream::pair()?;
    let fd = process::inherit(command, &qemus);
    command.args(["-chardev", &format!("socket,id=debugger,fd={fd}")]);
    command.args(["-gdb", "chardev:debugger", "-S"]);
    Ok((ours, qemus))
}

/// The contents of a file from `offset` on.
fn read_from(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
