//! The console that loads work on, and what to do where there is none.

use crate::failure::{Failure, Result};
use latlab_sys::console::{self, Console};
use latlab_sys::process;
use std::io::{self, ErrorKind};
use std::path::Path;

pub(super) fn open() -> io::Result<Console> {
    Console::open(Path::new(console::PATH))
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
