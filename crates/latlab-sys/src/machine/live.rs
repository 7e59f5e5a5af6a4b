//! The state that only the running kernel can report, not a captured tree.

use crate::clock;
use latlab_core::machine::Machine;

pub(super) fn read(machine: &mut Machine) {
    machine.timer_resolution_ns = Some(clock::resolution().0);
    machine.time_domain = super::time_domain();
    // Kernels before 6.1 do not show it in /proc/sys/kernel. That of this program is the same,
    // except for 32-bit programs.
    machine.processor.arch.get_or_insert_with(|| std::env::consts::ARCH.to_owned());
}
