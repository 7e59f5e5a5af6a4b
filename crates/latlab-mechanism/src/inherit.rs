//! Priority inheritance of IRQ threads (section 3.5 of the paper).

use super::{Description, Mechanism, Priority, ThreadRole};

/// Gives a thread that real-time tasks need the highest priority among them, so that no task of
/// lower priority delays them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inherit;

impl Mechanism for Inherit {
    fn description(&self) -> Description {
        Description {
            threads: ThreadRole::Raises,
            priority: Priority::OfAllNeeds,
            ..Description::new("inherit")
        }
    }
}
