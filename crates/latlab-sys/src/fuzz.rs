//! What the fuzz targets reach of this crate: its parsers, each with assertions about the result.

use crate::{guard, knob};

/// A journal. What is accepted lists only what latlab changes, and is read again as it was written.
pub fn journal(bytes: &[u8]) {
    guard::check_journal(bytes);
}

/// The text of a knob's file.
pub fn knob(text: &str) {
    knob::check_text(text);
}
