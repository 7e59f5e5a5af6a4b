//! The time of a guest: the unit that its clock counts.

use latlab_core::machine::TimeDomain;
use latlab_measure::session::Accel;

/// The unit that the clock of a guest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestTime {
    /// Executed instructions, one nanosecond each; idle time is skipped.
    Instructions,
    /// Wall-clock time of the host.
    Wall(Accel),
}

impl GuestTime {
    /// The time domain of its records.
    pub fn domain(self) -> TimeDomain {
        match self {
            GuestTime::Instructions => TimeDomain::Instructions,
            GuestTime::Wall(_) => TimeDomain::Virtualized,
        }
    }
}
