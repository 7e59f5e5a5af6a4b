//! Entry points for fuzzing: the parsers of this crate, each with assertions about the result.

use crate::{guard, knob};

/// A journal. An accepted journal lists only things that latlab changes. Written and read again, it
/// is the same.
pub fn journal(bytes: &[u8]) {
    guard::check_journal(bytes);
}

/// The text of a knob's file.
pub fn knob(text: &str) {
    knob::check_text(text);
}
