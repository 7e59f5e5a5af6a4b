//! Reading the state of the machine.

use crate::root::Root;
use latlab_core::machine::Machine;

/// The state of the machine under `root`.
pub fn read(root: &Root) -> Machine {
    Machine {
        cpus: crate::cpu::online(root),
        ..Machine::default()
    }
}
