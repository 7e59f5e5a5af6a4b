//! The accelerator of a virtual machine: KVM where a test boot shows that it works.

use super::cells::ask;
use super::guest::{Cell, GuestTime, Job, PROGRAM, Variables};
use super::{kernel, prepare};
use crate::failure::{Failure, Result};
use crate::message::Message;
use crate::session::{Accel, Session};
use latlab_core::time::Nanos;
use latlab_sys::file;
use std::fs::File;

/// The requested accelerator, else KVM if the kernel of `target` can measure with it.
pub(crate) fn choose(target: &str, session: &mut Session<'_>) -> Result<Accel> {
    if session.accel == Some(Accel::Tcg) {
        return Ok(Accel::Tcg);
    }
    match (works(target, session)?, session.accel) {
        (true, _) => Ok(Accel::Kvm),
        (false, None) => Ok(Accel::Tcg),
        (false, Some(_)) => Err(Failure::Unsupported(format!(
            "{target}: KVM does not run guests here (/dev/kvm is missing, not accessible, or did \
             not boot the kernel): omit --accel to let QEMU translate"
        ))),
    }
}

/// Tries KVM: a kernel of this machine's architecture must boot, and its timers must wake a task. Until
/// this machine boots again, one kernel that does so answers for all; one that does not, for itself
/// only, as it may be the kernel's fault.
fn works(target: &str, session: &mut Session<'_>) -> Result<bool> {
    if File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(false);
    }
    let kernel = prepare::kernel(target, session)?.1;
    if !kernel.arch.is_host() {
        return Ok(false);
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let path = kernel::cache()?.join("kvm");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    match known.strip_prefix(boot.as_str()).and_then(|answer| answer.split_once(' ')) {
        Some(("works", _)) => return Ok(true),
        Some((_, refused)) if refused == kernel.digest => return Ok(false),
        _ => {}
    }
    let digest = kernel.digest.clone();
    session.watch.note("testing KVM");
    let words = ["--", PROGRAM, "run", "cyclic", "--count", "100"].map(str::to_owned).to_vec();
    let job = Job::Exec { words, folder: "/".into(), variables: Variables::new() };
    let limit = session.limit.replace(Nanos::from_secs(20));
    let tried = ask(Cell::plain(target, kernel, GuestTime::Wall(Accel::Kvm), job), session);
    session.limit = limit;
    let answer = match tried {
        Ok(Message::Exited(0)) => "works",
        Ok(_) => "refuses",
        Err(Failure::Failed(_)) if !session.ended => "refuses",
        Err(failure) => return Err(failure),
    };
    // Without the file the next run tests again.
    let _ = file::write_atomically(&path, format!("{boot}{answer} {digest}").as_bytes());
    Ok(answer == "works")
}
