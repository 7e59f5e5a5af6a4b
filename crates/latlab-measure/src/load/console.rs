//! The console that loads use, and the check that there is one.

use latlab_core::time::Nanos;
use latlab_part::failure::{Failure, Result};
use latlab_sys::console::{self, Console, SPARE};
use latlab_sys::{clock, process};
use std::io::{self, ErrorKind};
use std::path::Path;

fn open() -> io::Result<Console> {
    Console::open(Path::new(console::PATH))
}

/// The number of the active terminal. Waits while it is [`SPARE`], as another load may switch there
/// for a moment again and again; fails if it stays so.
pub(super) fn active() -> io::Result<u16> {
    const PATIENCE: Nanos = Nanos::from_secs(5);
    let deadline = clock::now() + PATIENCE;
    while clock::now() < deadline {
        let active = open()?.active()?;
        if active != SPARE {
            return Ok(active);
        }
        clock::sleep_for(Nanos::from_millis(1));
    }
    let why =
        format!("terminal {SPARE} is active, which loads use: switch to another one (chvt 1)");
    Err(io::Error::other(why))
}

/// The terminal with this number.
pub(super) fn terminal(number: u16) -> io::Result<Console> {
    Console::open(Path::new(&format!("/dev/tty{number}")))
}

/// Opens the console; fails where a load can't use it.
pub(super) fn check(load: &str) -> Result<Console> {
    let refused = |why: String| Failure::unsupported(format!("{load}: {why}"));
    let console = open().map_err(|e| match e.kind() {
        ErrorKind::PermissionDenied => root_only(load),
        _ => refused(format!(
            "this machine has no console ({}: {e}): use one with a keyboard and a display, or the \
             laboratory (--on lab:PROFILE)",
            console::PATH
        )),
    })?;
    if !process::is_root() {
        return Err(root_only(load));
    }
    console.active().map_err(|e| {
        refused(format!(
            "{} is not a console ({e}): use the laboratory (--on lab:PROFILE)",
            console::PATH
        ))
    })?;
    Ok(console)
}

fn root_only(load: &str) -> Failure {
    let path = console::PATH;
    Failure::unsupported(format!("{load}: {path} needs root: run latlab as root"))
}
