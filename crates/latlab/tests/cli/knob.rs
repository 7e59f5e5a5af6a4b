//! The knob that the tests turn: how often the kernel gathers its memory statistics. Nothing
//! depends on it.

use std::fs;

const PATH: &str = "/proc/sys/vm/stat_interval";

/// Its value now.
pub(crate) fn read() -> String {
    fs::read_to_string(PATH).expect("every kernel has it").trim().to_owned()
}

/// Turns it, as an administrator would.
pub(crate) fn write(value: &str) {
    fs::write(PATH, value).expect("root may turn it");
}

/// Its value now, which it gets again when this is dropped.
pub(crate) fn put_back() -> PutBack {
    PutBack(read())
}

/// See [`put_back`].
#[derive(Debug)]
pub(crate) struct PutBack(pub(crate) String);

impl Drop for PutBack {
    fn drop(&mut self) {
        write(&self.0);
    }
}
