//! What only the running kernel can be asked, not a captured tree.

use crate::clock;
use latlab_core::machine::Machine;

pub(super) fn read(machine: &mut Machine) {
    machine.timer_resolution_ns = clock::resolution().ok().map(|resolution| resolution.0);
    // Kernels before 6.1 don't show it in /proc/sys/kernel; the program's own is the same, but
    // for 32-bit programs.
    machine.processor.arch.get_or_insert_with(|| std::env::consts::ARCH.to_owned());
}
