//! Terminals: their size, their settings, and serial lines that carry raw bytes.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Columns and rows of the terminal that stderr writes to; None if it is no terminal, or a terminal
/// that cannot move its cursor (`TERM=dumb`).
pub fn size() -> Option<(u16, u16)> {
    if is_dumb() {
        return None;
    }
    let size = tcgetwinsize(io::stderr()).ok()?;
    (size.ws_col > 0).then_some((size.ws_col, size.ws_row))
}

/// Whether the terminal shows escape sequences as text (`TERM=dumb`).
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|kind| kind == "dumb")
}

/// Columns of the terminal that stdout writes to; None where it is no terminal.
pub fn stdout_columns() -> Option<u16> {
    columns(io::stdout())
}

/// Columns of the terminal that stderr writes to; None where it is no terminal.
pub fn stderr_columns() -> Option<u16> {
    columns(io::stderr())
}

fn columns(stream: impl AsFd) -> Option<u16> {
    /// Columns of a terminal that does not know its size, such as a serial line.
    const USUAL: u16 = 80;
    let columns = tcgetwinsize(stream).ok()?.ws_col;
    Some(if columns == 0 { USUAL } else { columns })
}

/// Makes a serial line carry raw bytes: no echo, no conversion of line ends.
pub fn set_raw(line: &File) -> io::Result<()> {
    let mut settings = tcgetattr(line)?;
    settings.make_raw();
    Ok(tcsetattr(line, OptionalActions::Now, &settings)?)
}

/// The settings of the terminal that stdin reads from. Dropping this restores them: a program that
/// is killed while it asks for a password leaves the terminal without an echo.
pub struct Settings(Option<Termios>);

impl Settings {
    /// Keeps the present settings. Has no effect where stdin is no terminal.
    pub fn keep() -> Settings {
        Settings(tcgetattr(io::stdin()).ok())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        let (Some(kept), Ok(now)) = (&self.0, tcgetattr(io::stdin())) else { return };
        // A background process that changes its terminal is stopped, so only where it is needed.
        if kept.local_modes != now.local_modes {
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, kept);
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}
