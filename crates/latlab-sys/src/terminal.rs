//! Terminals: what kind is on the other side, if any, and lines that carry bytes as they are.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Columns and rows of the terminal that stderr goes to; none where it is not one.
pub fn size() -> Option<(u16, u16)> {
    // SAFETY: winsize is made of integers, for which all bits zero is a value.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes a winsize to the address given.
    let answer = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then_some((size.ws_col, size.ws_row))
}

/// Makes a serial line carry bytes as they are: no echo, no line ends made of others.
pub fn set_raw(line: &File) -> io::Result<()> {
    let mut settings = read(line)?;
    // SAFETY: `settings` is valid to change.
    unsafe { libc::cfmakeraw(&raw mut settings) };
    // SAFETY: `settings` is valid.
    crate::checked(unsafe {
        libc::tcsetattr(line.as_raw_fd(), libc::TCSANOW, &raw const settings)
    })?;
    Ok(())
}

/// How the terminal that stdin comes from is set. Dropping it sets the terminal so again: a
/// program that is killed while it asks for a password leaves it without an echo.
pub struct Settings(Option<libc::termios>);

impl Settings {
    /// As they are now; of no effect where stdin is no terminal.
    pub fn keep() -> Settings {
        Settings(read(&io::stdin()).ok())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        let (Some(kept), Ok(now)) = (&self.0, read(&io::stdin())) else { return };
        // Who works in the background is stopped if it touches a terminal, so not without need.
        if kept.c_lflag != now.c_lflag {
            // SAFETY: `kept` is what the kernel gave.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSADRAIN, &raw const *kept) };
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

fn read(line: &impl AsRawFd) -> io::Result<libc::termios> {
    // SAFETY: termios is made of integers, for which all bits zero is a value.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `settings` is valid to write to.
    crate::checked(unsafe { libc::tcgetattr(line.as_raw_fd(), &raw mut settings) })?;
    Ok(settings)
}
