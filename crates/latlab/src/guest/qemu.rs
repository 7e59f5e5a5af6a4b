//! One QEMU at work: how it is started, what it says, how it ends.

use super::cell::{Boot, Cell};
use super::microscope::Microscope;
use super::{Accel, Time, debugger, driver};
use crate::failure::{Failure, Result, failed};
use crate::message::Message;
use crate::needs::Device;
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

/// The program.
pub(super) const QEMU: &str = "qemu-system-x86_64";

/// A guest. Dropping it ends it; nothing of it is in any file system.
pub(super) struct Guest {
    target: String,
    running: Running,
    /// What the kernel says.
    console: File,
    /// What latlab says in the guest.
    port: File,
    /// What QEMU says.
    complaints: File,
    /// What its microscope saw.
    trace: Option<File>,
    preset: Option<JoinHandle<io::Result<()>>>,
    began: Nanos,
    patience: Nanos,
    /// How far the port has been read.
    read: u64,
    ended: Option<ExitStatus>,
}

impl Guest {
    /// Starts a guest.
    pub(super) fn start(cell: &Cell, boot: &Boot, patience: Nanos) -> Result<Guest> {
        let start = || -> io::Result<Guest> {
            let (console, port, complaints) =
                (file::in_memory()?, file::in_memory()?, file::in_memory()?);
            let mut initramfs = file::in_memory()?;
            initramfs.write_all(&boot.initramfs)?;
            let mut command = process::tied(QEMU);
            command.args(arguments(cell));
            command.arg("-kernel").arg(&cell.kernel.image).args(["-append", &boot.cmdline]);
            let path = path_of(&mut command, &initramfs);
            command.args(["-initrd", &path]);
            for (name, file) in [("console", &console), ("port", &port)] {
                let path = path_of(&mut command, file);
                command.args(["-chardev", &format!("file,id={name},path={path}")]);
                command.args(["-serial", &format!("chardev:{name}")]);
            }
            let trace = cell.microscope.as_ref().map(|it| watch(&mut command, it)).transpose()?;
            let debugger = cell.timer.map(|_| debugger_line(&mut command)).transpose()?;
            command.stdin(Stdio::null()).stdout(complaints.try_clone()?);
            command.stderr(complaints.try_clone()?);
            let running = Running::start(&mut command)?;
            // Only now does QEMU have the other end of the debugger's line, and nobody else.
            let preset = debugger.zip(cell.timer).map(|((near, far), timer)| {
                drop(far);
                debugger::preset(near, timer)
            });
            Ok(Guest {
                target: cell.target.clone(),
                running,
                console,
                port,
                complaints,
                trace,
                preset,
                began: clock::now(),
                patience,
                read: 0,
                ended: None,
            })
        };
        start().map_err(|error| missing(&cell.target, &error))
    }

    /// What it has said since it was last asked, whole lines only.
    pub(super) fn hear(&mut self) -> Result<Vec<Message>> {
        let text = self.said()?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        text[..whole].lines().map(Message::read).collect()
    }

    /// All that it has said, as it came.
    pub(super) fn transcript(&mut self) -> Result<String> {
        self.read = 0;
        self.said()
    }

    /// What its microscope saw, where it has one.
    pub(super) fn trace(&self) -> Result<String> {
        let Some(trace) = &self.trace else { return Ok(String::new()) };
        let bytes = read_from(trace, 0).map_err(|e| failed(&self.target, e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn said(&self) -> Result<String> {
        let bytes = read_from(&self.port, self.read).map_err(|e| failed(&self.target, e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Why nothing more is to be expected of it, when that is so.
    pub(super) fn failure(&mut self) -> Option<Failure> {
        if let Some(error) = self.preset_error() {
            return Some(self.lost(&format!("QEMU's debugger port failed ({error})")));
        }
        let waited = clock::now() - self.began;
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

    /// For how long it has run.
    pub(super) fn age(&self) -> Nanos {
        clock::now() - self.began
    }

    /// What the kernel complained about while it ran.
    pub(super) fn kernel_complaints(&self) -> Vec<String> {
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
        // Where QEMU is going, its end says more than the line that broke first.
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
        let complaints = read_from(&self.complaints, 0).unwrap_or_default();
        let complaints = String::from_utf8_lossy(&complaints);
        let said = complaints.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        if let Some(signal) = status.signal() {
            return self.lost(&format!("QEMU was killed by signal {signal}"));
        }
        if !status.success() {
            return self.lost(&format!("QEMU ended with {status}: {said}"));
        }
        self.lost("the guest went down without a result")
    }

    /// A guest that is lost: when, and what was last on its console.
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
            format!("the last of its console:\n  {}", lines.join("\n  "))
        };
        Failure::Failed(format!("{}: {why}; {console}", self.target))
    }

    fn console_lines(&self) -> Vec<String> {
        let bytes = read_from(&self.console, 0).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

/// The machine that QEMU is to be: no device that the host's time or its users reach.
///
/// Where the guest goes idle, QEMU's main loop moves its time to the next timer, and now and then
/// does so before the instructions up to there are counted (`icount_start_warp_timer`,
/// `softmmu/icount.c`). Only while it records the guest for a replay do the two wait for each
/// other; nobody wants the recording itself. It knows guests with one processor only.
///
/// What `cmpxchg16b` leaves in the flags it does not change may be an operand of the instructions
/// before it (`helper_cmpxchg16b` of QEMU 7.2, `target/i386/tcg/mem_helper.c`). An interrupt right
/// after it keeps them, "nested task" among them, and a later `iretq` faults. That was seen where
/// one processor interrupts another: guests with several do not have the instruction.
pub(super) fn arguments(cell: &Cell) -> Vec<String> {
    let (cpus, memory) = (cell.profile.cpus, cell.profile.memory.0 >> 20);
    let time = match cell.time {
        Time::Instructions => "-accel tcg -rtc base=2020-01-01,clock=vm",
        Time::Wall(Accel::Tcg) => "-accel tcg",
        Time::Wall(Accel::Kvm) => "-accel kvm",
    };
    let processor = match (cell.time, cpus) {
        (Time::Instructions, 1) => "-cpu max,-rdrand,-rdseed",
        (Time::Instructions, _) => "-cpu max,-rdrand,-rdseed,-cx16",
        (Time::Wall(Accel::Tcg), 1) => "-cpu max",
        (Time::Wall(Accel::Tcg), _) => "-cpu max,-cx16",
        (Time::Wall(Accel::Kvm), _) => "-cpu host",
    };
    // The small firmware spares the guest the search for devices that it does not have.
    let machine = "-machine pc,usb=off -bios qboot.rom -seed 1 -nodefaults -no-user-config \
                   -display none -monitor none -no-reboot";
    let count = match (cell.time, cpus) {
        (Time::Wall(_), _) => "",
        (_, 1) => "-icount shift=0,sleep=off,align=off,rr=record,rrfile=/dev/null",
        _ => "-icount shift=0,sleep=off,align=off",
    };
    let size = format!("-smp {cpus} -m {memory}M");
    let words =
        [time, processor, count, machine, &size].into_iter().flat_map(str::split_whitespace);
    let driver = cell.driver.as_ref().map_or(&[][..], |_| driver::device(cell.time));
    let devices = cell.needs().unwrap_or_default().devices;
    let devices = devices.into_iter().flat_map(device);
    let devices = driver.iter().chain(devices).map(|word| (*word).to_owned());
    words.map(str::to_owned).chain(devices).collect()
}

/// How QEMU plays it.
fn device(device: Device) -> &'static [&'static str] {
    match device {
        Device::Display => &["-vga", "std"],
        // On this machine they have but a legacy line, which Linux gives nobody: the lines 16 to 23
        // as well, as on newer ones.
        Device::Hpet => &["-global", "hpet.hpet-intcap=0xff0104"],
    }
}

/// QEMU's own name and version; where there is none, how to get it.
pub(super) fn version(target: &str) -> Result<String> {
    let asked = process::tied(QEMU).arg("--version").output();
    let said = asked.map_err(|error| missing(target, &error))?;
    if !said.status.success() {
        return Err(Failure::Failed(format!("{target}: {QEMU} --version: {}", said.status)));
    }
    Ok(String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().to_owned())
}

fn missing(target: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        let remedy = "apt-get install qemu-system-x86";
        return Failure::Unsupported(format!("{target}: {QEMU} is not installed: {remedy}"));
    }
    failed(&format!("{target}: {QEMU} can't be started"), error)
}

/// The path under which QEMU finds a file that has no name.
fn path_of(command: &mut Command, file: &File) -> String {
    format!("/proc/self/fd/{}", process::inherit(command, file))
}

/// Has a microscope watch, which writes into the file.
fn watch(command: &mut Command, microscope: &Microscope) -> io::Result<File> {
    let trace = file::in_memory()?;
    let path = path_of(command, &trace);
    command.args(["-plugin", &microscope.argument(&path)]);
    Ok(trace)
}

/// A line to QEMU's debugger port: our end and its.
fn debugger_line(command: &mut Command) -> io::Result<(UnixStream, UnixStream)> {
    let (near, far) = UnixStream::pair()?;
    let fd = process::inherit(command, &far);
    command.args(["-chardev", &format!("socket,id=debugger,fd={fd}")]);
    command.args(["-gdb", "chardev:debugger", "-S"]);
    Ok((near, far))
}

/// What a file holds from `offset` on.
fn read_from(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
