//! The time of a guest: the unit that its clock counts.

use crate::session::Accel;
use latlab_core::machine::TimeDomain;

/// The unit that the clock of a guest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestTime {
    /// Executed instructions, one nanosecond each; idle time is skipped.
    Instructions,
    /// Wall-clock time of the host.
    Wall(Accel),
}

impl GuestTime {
    pub(crate) fn domain(self) -> TimeDomain {
        match self {
            GuestTime::Instructions => TimeDomain::Instructions,
            GuestTime::Wall(_) => TimeDomain::Virtualized,
        }
    }
}
