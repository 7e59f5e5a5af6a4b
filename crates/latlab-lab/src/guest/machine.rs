//! The machine that QEMU emulates: its arguments, and QEMU's version.

use super::GuestTime;
use super::cell::Cell;
use crate::arch::{Arch, InterruptDevice};
use latlab_measure::session::Accel;
use latlab_part::failure::{Failure, Result, failed};
use latlab_sys::process;
use std::io;
use std::process::Command;

/// QEMU's arguments for a guest, without devices that depend on the host's time or its users.
///
/// Where the guest goes idle, QEMU's main loop moves its clock to the next timer, and sometimes
/// does so before the instructions up to there are counted (`icount_start_warp_timer`,
/// `softmmu/icount.c`). The two wait for each other only while QEMU records the guest for a replay;
/// the recording itself is not wanted. QEMU can record guests with one processor only.
///
/// In wall-clock time, too, one thread translates for all processors in turns. With a thread for
/// each, QEMU 7.2 seems to execute instructions that another processor has just replaced: the guest's
/// kernel can panic (`Oops: int3`) while it changes its own code.
///
/// `Unsupported` where the architecture has no device that a part needs.
pub(crate) fn arguments(cell: &Cell) -> Result<Vec<String>> {
    let arch = cell.kernel.arch;
    let (cpus, memory) = (cell.profile.cpus, cell.profile.memory.0 >> 20);
    let accel = match cell.time {
        GuestTime::Instructions => "-accel tcg -rtc base=2020-01-01,clock=vm",
        GuestTime::Wall(Accel::Tcg) => "-accel tcg,thread=single",
        GuestTime::Wall(Accel::Kvm) => "-accel kvm",
    };
    let clock = match (cell.time, cpus) {
        (GuestTime::Wall(_), _) => "",
        (_, 1) => "-icount shift=0,sleep=off,align=off,rr=record,rrfile=/dev/null",
        _ => "-icount shift=0,sleep=off,align=off",
    };
    let size = format!("-smp {cpus} -m {memory}M");
    // In instruction time the memory is a file, so that a stopped guest can be kept.
    let backed = if stops(cell) { "-machine memory-backend=memory" } else { "" };
    let words = [accel, arch.processor(cell.time, cpus), clock, arch.board, &size, backed];
    let mut words: Vec<&str> = words.into_iter().flat_map(str::split_whitespace).collect();
    for device in &cell.needs.devices {
        words.extend(arch.device(*device)?);
    }
    if let (InterruptDevice::BuiltIn(device), true) = (arch.interrupt_device, interrupts(cell)) {
        words.extend(["-device", device]);
    }
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// Whether a guest stops before its job, and can be kept.
pub(crate) fn stops(cell: &Cell) -> bool {
    cell.time == GuestTime::Instructions
}

/// Whether a guest has the device that interrupts for the test driver: its delay is exact in
/// instruction time only.
fn interrupts(cell: &Cell) -> bool {
    cell.driver.is_some() && stops(cell)
}

/// QEMU's name of a device to plug in after the guest has stopped.
pub(super) fn plugged_in(cell: &Cell) -> Option<&'static str> {
    match cell.kernel.arch.interrupt_device {
        InterruptDevice::PluggedIn(device) => interrupts(cell).then_some(device),
        InterruptDevice::BuiltIn(_) => None,
    }
}

/// QEMU's command. Whoever breaks out of a guest finds no capability except for reading files.
pub(super) fn qemu(arch: &Arch) -> Command {
    let mut command = process::command(arch.qemu);
    process::confine(&mut command);
    command
}

/// QEMU's own name and version. Fails with the package to install where QEMU is missing.
pub(crate) fn version(cell: &Cell) -> Result<String> {
    let (target, arch) = (&cell.target, cell.kernel.arch);
    let asked = process::output(qemu(arch).arg("--version"));
    let said = asked.map_err(|error| missing(target, arch, &error))?;
    if !said.status.success() {
        return Err(Failure::failed(format!("{target}: {} --version: {}", arch.qemu, said.status)));
    }
    Ok(String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().to_owned())
}

pub(super) fn missing(target: &str, arch: &Arch, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        let (qemu, package) = (arch.qemu, arch.qemu_package);
        return Failure::unsupported(format!(
            "{target}: {qemu} is not installed: apt-get install {package}"
        ));
    }
    failed(&format!("{target}: {} can't be started", arch.qemu), error)
}
