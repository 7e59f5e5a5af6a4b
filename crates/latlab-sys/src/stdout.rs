//! Whether this process was started without a standard output.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether descriptor 1 was closed when this process was started (`>&-`). Later output to it is
/// lost without an error: the standard library opens `/dev/null` there before `main`.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Relaxed)
}

/// Called by the C library before the standard library's own preparations for `main`.
#[used]
// SAFETY: the section holds pointers to functions of this type, which are called once, before `main`.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: fcntl with F_GETFD takes no pointers; it fails where the descriptor is not open.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    WAS_CLOSED.store(is_closed, Relaxed);
}
