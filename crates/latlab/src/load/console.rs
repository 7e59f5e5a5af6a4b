//! The console that loads work on, and what to do where there is none.

use crate::failure::{Failure, Result};
use latlab_core::time::Nanos;
use latlab_sys::console::{self, Console, SPARE};
use latlab_sys::{clock, process};
use std::io::{self, ErrorKind};
use std::path::Path;

fn open() -> io::Result<Console> {
    Console::open(Path::new(console::PATH))
}

/// The number of the terminal that was to be seen when the loads were checked, when it was not
/// [`SPARE`]: another load may have switched there since, for a moment each time.
pub(super) fn seen() -> io::Result<u16> {
    loop {
        let seen = open()?.active()?;
        if seen != SPARE {
            return Ok(seen);
        }
        clock::sleep_for(Nanos::from_millis(1));
    }
}

/// A terminal by its number.
pub(super) fn terminal(number: u16) -> io::Result<Console> {
    Console::open(Path::new(&format!("/dev/tty{number}")))
}

/// The console, with a refusal where a load can't have it.
pub(super) fn check(load: &str) -> Result<Console> {
    let refused = |why: String| Failure::Unsupported(format!("{load}: {why}"));
    let console = open().map_err(|e| match e.kind() {
        ErrorKind::PermissionDenied => root_only(load),
        _ => refused(format!(
            "this machine has no console ({}: {e}): take one with a keyboard and a display, or the \
             laboratory (--on lab:PROFILE)",
            console::PATH
        )),
    })?;
    if !process::is_root() {
        return Err(root_only(load));
    }
    console.active().map_err(|e| {
        refused(format!(
            "{} is no console ({e}): go to the laboratory (--on lab:PROFILE)",
            console::PATH
        ))
    })?;
    Ok(console)
}

fn root_only(load: &str) -> Failure {
    let path = console::PATH;
    Failure::Unsupported(format!("{load}: {path} is only for root: run latlab as root"))
}
