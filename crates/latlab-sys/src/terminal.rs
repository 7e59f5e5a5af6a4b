//! What kind of terminal is on the other side, if any.

/// Columns and rows of the terminal that stderr goes to; none where it is not one.
pub fn size() -> Option<(u16, u16)> {
    // SAFETY: winsize is made of integers, for which all bits zero is a value.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ writes a winsize to the address given.
    let answer = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then_some((size.ws_col, size.ws_row))
}
