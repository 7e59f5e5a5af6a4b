//! What only the running kernel can be asked, not a captured tree.

use latlab_core::machine::Machine;

pub(super) fn read(machine: &mut Machine) {
    machine.timer_resolution_ns = timer_resolution_ns();
    // Kernels before 6.1 don't show it in /proc/sys/kernel; the program's own is the same, but
    // for 32-bit programs.
    machine.processor.arch.get_or_insert_with(|| std::env::consts::ARCH.to_owned());
}

/// The resolution of the clock that timers use: 1 ns as soon as the kernel has switched to
/// high-resolution timers, else its tick (`clock_getres(2)`, NOTES).
fn timer_resolution_ns() -> Option<u64> {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `resolution` is a timespec that the call may write to.
    let answer = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut resolution) };
    let nanos = u64::try_from(resolution.tv_nsec).ok()?;
    (answer == 0 && resolution.tv_sec == 0).then_some(nanos)
}
