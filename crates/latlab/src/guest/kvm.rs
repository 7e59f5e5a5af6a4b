//! Whether KVM really works here, which the presence of `/dev/kvm` does not say.

use super::qemu::QEMU;
use crate::failure::{Failure, Result};
use crate::kernel;
use latlab_core::time::Nanos;
use latlab_sys::process::{self, Running};
use latlab_sys::{clock, file};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

/// What carries out a guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub(crate) enum Accel {
    /// The processor.
    Kvm,
    /// QEMU's translator.
    Tcg,
}

impl Accel {
    /// The one asked for, else KVM where it works.
    pub(crate) fn choose(asked: Option<Accel>) -> Result<Accel> {
        match asked {
            Some(Accel::Tcg) => Ok(Accel::Tcg),
            Some(Accel::Kvm) if works() => Ok(Accel::Kvm),
            Some(Accel::Kvm) => Err(Failure::Unsupported(
                "KVM can't run guests here (/dev/kvm is missing, closed to you, or refuses them): \
                 leave --accel out, and QEMU translates"
                    .to_owned(),
            )),
            None => Ok(if works() { Accel::Kvm } else { Accel::Tcg }),
        }
    }
}

/// Tries a tiny guest once for each boot of this machine.
fn works() -> bool {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return false;
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let memory = kernel::cache().ok().map(|cache| cache.join("kvm"));
    let known = memory.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    if let Some(answer) = known.as_deref().and_then(|known| known.strip_prefix(boot.as_str())) {
        return answer == "works";
    }
    let works = try_guest().unwrap_or(false);
    if let Some(path) = memory {
        let answer = format!("{boot}{}", if works { "works" } else { "refuses" });
        // Not to remember costs a second of the next run.
        let _ = file::write_atomically(&path, answer.as_bytes());
    }
    works
}

/// Whether a guest that only tells QEMU to end does so.
fn try_guest() -> std::io::Result<bool> {
    const PATIENCE: Nanos = Nanos::from_secs(5);
    let mut firmware = file::in_memory()?;
    firmware.write_all(&tiny_firmware())?;
    let mut command = process::tied(QEMU);
    let path = format!("/proc/self/fd/{}", process::inherit(&mut command, &firmware));
    command.args(["-accel", "kvm", "-cpu", "host", "-machine", "pc", "-m", "16", "-nodefaults"]);
    command.args(["-display", "none", "-no-reboot", "-bios", &path]);
    command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=1"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running::start(&mut command)?;
    let deadline = clock::now() + PATIENCE;
    while clock::now() < deadline {
        if let Some(status) = running.child().try_wait()? {
            return Ok(status.code() == Some(EXIT));
        }
        clock::sleep_for(Nanos::from_millis(10));
    }
    Ok(false)
}

/// What QEMU exits with when a guest writes [`WORD`] to its debug port: twice that, and one.
const EXIT: i32 = 2 * WORD as i32 + 1;
const WORD: u8 = 0x21;

/// 64 KiB of firmware. A processor begins 16 bytes before its end, in 16-bit mode:
/// `mov al, WORD; out 0xf4, al; hlt`.
fn tiny_firmware() -> Vec<u8> {
    let mut firmware = vec![0x90; 64 * 1024];
    let start = firmware.len() - 16;
    firmware[start..start + 5].copy_from_slice(&[0xb0, WORD, 0xe6, 0xf4, 0xf4]);
    firmware
}
