//! Priority inheritance of interrupt threads (section 3.5 of the paper).

use super::{Mechanism, Part};

/// A thread that real-time tasks need has the highest priority among them: what has less does not
/// keep them waiting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inherit;

impl Mechanism for Inherit {
    fn name(&self) -> &'static str {
        "inherit"
    }

    fn part(&self) -> Part {
        Part::Follows
    }

    fn priority(&self, _own: Option<u32>, any: u32) -> Option<u32> {
        Some(any)
    }
}
