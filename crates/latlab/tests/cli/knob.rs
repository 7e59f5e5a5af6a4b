//! The knob that the tests set: the update interval of the kernel's memory statistics. Nothing
//! depends on it.

use std::fs;

pub(crate) const PATH: &str = "/proc/sys/vm/stat_interval";

/// Returns its current value.
pub(crate) fn read() -> String {
    fs::read_to_string(PATH).expect("every kernel has this knob").trim().to_owned()
}

/// Sets it, as an administrator would.
pub(crate) fn write(value: &str) {
    fs::write(PATH, value).expect("root may set it");
}

/// Returns its current value, which is restored when this is dropped.
pub(crate) fn restore_on_drop() -> RestoreOnDrop {
    RestoreOnDrop(read())
}

/// The value to restore; see [`restore_on_drop`].
#[derive(Debug)]
pub(crate) struct RestoreOnDrop(pub(crate) String);

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        write(&self.0);
    }
}
