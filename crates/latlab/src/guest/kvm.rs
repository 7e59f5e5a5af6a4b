//! What carries out a virtual machine's instructions: KVM where it works, which the presence of
//! `/dev/kvm` does not say.

use super::Time;
use super::cell::Cell;
use super::laboratory;
use super::orders::{Job, PROGRAM};
use crate::errand::Errand;
use crate::failure::{Failure, Result};
use crate::kernel;
use crate::message::Message;
use latlab_core::time::Nanos;
use latlab_sys::file;
use std::collections::BTreeMap;
use std::fs::File;

/// What carries out a guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Accel {
    /// The processor.
    Kvm,
    /// QEMU's translator.
    Tcg,
}

impl Accel {
    /// The one asked for, else KVM where the kernel of `target` measures on it.
    pub(crate) fn choose(target: &str, errand: &mut Errand<'_>) -> Result<Accel> {
        if errand.accel == Some(Accel::Tcg) {
            return Ok(Accel::Tcg);
        }
        match (works(target, errand)?, errand.accel) {
            (true, _) => Ok(Accel::Kvm),
            (false, None) => Ok(Accel::Tcg),
            (false, Some(_)) => Err(Failure::Unsupported(format!(
                "{target}: KVM runs no guests here (/dev/kvm is missing, closed to you, or did not \
                 boot the kernel): leave --accel out, and QEMU translates"
            ))),
        }
    }
}

/// Tries it once for each boot of this machine: a kernel has to boot, and its timers have to wake
/// somebody.
fn works(target: &str, errand: &mut Errand<'_>) -> Result<bool> {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(false);
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let memory = kernel::cache()?.join("kvm");
    let known = std::fs::read_to_string(&memory).unwrap_or_default();
    if let Some(answer) = known.strip_prefix(boot.as_str()) {
        return Ok(answer == "works");
    }
    errand.watch.note("tries whether KVM works");
    let kernel = laboratory::kernel(target, errand)?.1;
    let words = ["--", PROGRAM, "run", "cyclic", "--count", "100"].map(str::to_owned).to_vec();
    let job = Job::Exec { words, folder: "/".into(), paths: BTreeMap::new() };
    let limit = errand.limit.replace(Nanos::from_secs(20));
    let tried = laboratory::ask(Cell::plain(target, kernel, Time::Wall(Accel::Kvm), job), errand);
    errand.limit = limit;
    let answer = match tried {
        Ok(Message::Exited(0)) => "works",
        Ok(_) => "refuses",
        Err(Failure::Failed(_)) if !errand.ended => "refuses",
        Err(failure) => return Err(failure),
    };
    // Not to remember costs some seconds of the next run.
    let _ = file::write_atomically(&memory, format!("{boot}{answer}").as_bytes());
    Ok(answer == "works")
}
