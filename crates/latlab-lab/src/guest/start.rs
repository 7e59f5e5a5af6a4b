//! Starts QEMU for a guest.

use super::cell::{Boot, Cell};
use super::launch::{Launch, Launching, Start};
use super::machine::{plugged_in, qemu, stops};
use super::output::Outputs;
use super::{launch, qcow2};
use latlab_core::size::Bytes;
use latlab_sys::file;
use latlab_sys::process::{self, Running};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// QEMU's command, with the files that it inherits.
struct Qemu {
    command: Command,
    /// Open until QEMU has started.
    inherited: Vec<File>,
}

/// Starts QEMU. A guest that stops before its job is launched by a thread of its own.
pub(super) fn start(
    cell: &Cell,
    arguments: &[String],
    boot: Boot,
    start: Start,
    outputs: &Outputs,
) -> io::Result<(Running, Option<Launching>)> {
    let command = qemu(cell.kernel.arch);
    let mut qemu = Qemu { command, inherited: Vec::new() };
    qemu.command.args(arguments);
    qemu.command.stdin(Stdio::null()).stdout(outputs.stderr.try_clone()?);
    qemu.command.stderr(outputs.stderr.try_clone()?);
    qemu.outputs(cell, outputs)?;
    if !stops(cell) {
        let Boot { initramfs, job, cmdline, .. } = boot;
        qemu.kernel(cell, &[initramfs, job].concat(), &cmdline)?;
        return Ok((Running::start(&mut qemu.command)?, None));
    }
    match &start {
        Start::Restore(_) => {
            let options = cell.kernel.arch.restored[usize::from(cell.kernel.is_vmlinux())];
            qemu.command.args(options);
        }
        _ => qemu.kernel(cell, &boot.initramfs, &boot.cmdline)?,
    }
    let memory = qemu.memory(cell.profile.memory, &start)?;
    let devices = qemu.devices(&start)?;
    let (ours, qemus) = qemu.debugger()?;
    let running = Running::start(&mut qemu.command)?;
    // Now QEMU alone holds the other end of the debugger's socket.
    drop(qemus);
    let console = outputs.console.try_clone()?;
    let (timer, device, job) = (cell.timer, plugged_in(cell), boot.job);
    let overwritten = cell.kernel.arch.overwritten;
    let launch = Launch { start, timer, memory, overwritten, devices, console, device, job };
    Ok((running, Some(launch::launch(ours, launch)?)))
}

impl Qemu {
    /// The path by which QEMU opens a file that has no name.
    fn path_of(&mut self, file: File) -> String {
        let fd = process::inherit(&mut self.command, &file);
        self.inherited.push(file);
        format!("/proc/self/fd/{fd}")
    }

    /// The serial ports and the plugin write into files.
    fn outputs(&mut self, cell: &Cell, outputs: &Outputs) -> io::Result<()> {
        let console = (&outputs.console, "console", ["-serial", "chardev:console"]);
        let port = (&outputs.port, "port", cell.kernel.arch.port);
        for (file, name, device) in [console, port] {
            let path = self.path_of(file.try_clone()?);
            self.command.args(["-chardev", &format!("file,id={name},append=on,path={path}")]);
            self.command.args(device);
        }
        if let Some(plugin) = &cell.plugin {
            let path = self.path_of(outputs.trace.try_clone()?);
            self.command.args(["-plugin", &plugin.argument(&path)]);
        }
        Ok(())
    }

    /// Refuses a kernel that was replaced since the cell was prepared, possibly hours ago: the new
    /// kernel's figures would be kept as the old one's.
    fn kernel(&mut self, cell: &Cell, initramfs: &[u8], cmdline: &str) -> io::Result<()> {
        if !cell.kernel.is_intact().map_err(io::Error::other)? {
            let name = &cell.kernel.name;
            let why = format!("the kernel {name} was changed meanwhile: run latlab again");
            return Err(io::Error::other(why));
        }
        let mut file = file::in_memory()?;
        file.write_all(initramfs)?;
        let path = self.path_of(file);
        self.command.arg("-kernel").arg(&cell.kernel.image).args(["-append", cmdline]);
        self.command.args(["-initrd", &path]);
        Ok(())
    }

    /// The guest's memory. A restored guest maps its snapshot's memory privately. Otherwise latlab
    /// shares the memory, to keep it.
    fn memory(&mut self, size: Bytes, start: &Start) -> io::Result<File> {
        let (memory, share) = match start {
            Start::Restore(snapshot) => (snapshot.memory.try_clone()?, "off"),
            Start::Boot | Start::BootAndKeep(_) => (file::in_memory()?, "on"),
        };
        if share == "on" {
            memory.set_len(size.0)?;
        }
        let path = self.path_of(memory.try_clone()?);
        let size = size.0;
        let object =
            format!("memory-backend-file,id=memory,mem-path={path},share={share},size={size}");
        self.command.args(["-object", &object]);
        Ok(memory)
    }

    /// The disk image for the state of the devices. No two guests can open the same one.
    fn devices(&mut self, start: &Start) -> io::Result<File> {
        let mut devices = file::in_memory()?;
        match start {
            Start::Restore(snapshot) => devices.write_all(&snapshot.devices)?,
            Start::Boot | Start::BootAndKeep(_) => devices.write_all(&qcow2::empty())?,
        }
        let path = self.path_of(devices.try_clone()?);
        let drive = format!("file={path},format=qcow2,if=none,id=devices");
        self.command.args(["-drive", &drive]);
        Ok(devices)
    }

    /// A socket to QEMU's debugger port: our end and QEMU's. The guest waits for the debugger.
    fn debugger(&mut self) -> io::Result<(UnixStream, UnixStream)> {
        let (ours, qemus) = UnixStream::pair()?;
        let fd = process::inherit(&mut self.command, &qemus);
        self.command.args(["-chardev", &format!("socket,id=debugger,fd={fd}")]);
        self.command.args(["-gdb", "chardev:debugger", "-S"]);
        Ok((ours, qemus))
    }
}
